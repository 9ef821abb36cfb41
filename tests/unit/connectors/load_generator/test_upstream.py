"""A load generator as an upstream, and that all of it which runs on executors gets there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.load_generator.upstream import LoadGeneratorUpstream
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, Start
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.storage.writing.shipping import pack_writer

AUCTION = LoadGeneratorSpec(generator="auction", tick_interval_ms=100, batch_size=2)


def test_its_clock_begins_when_it_is_made_and_goes_on_when_it_is_opened_again() -> None:
    made = LoadGeneratorUpstream(AUCTION, now=lambda: 5_000).inspect(Start())
    assert made.start == Position()
    assert made.info.partitions == (0, 1, 2, 3, 4)
    later = LoadGeneratorUpstream(AUCTION, made.info.incarnation, now=lambda: 6_050)
    assert later.end_offsets() == Position(dict.fromkeys(range(5), 20))
    assert later.begin_offsets() == Position()
    later.check_identity(made.info.incarnation)
    later.check_history(Position({"0": 3}))


def test_it_is_another_one_when_it_was_made_anew_or_makes_other_records() -> None:
    one, other = LoadGeneratorUpstream(AUCTION), LoadGeneratorUpstream(AUCTION)
    with pytest.raises(UpstreamChanged):
        one.check_identity(other.describe().incarnation)
    old = "loadgen:0:5000:ab"
    with pytest.raises(UpstreamChanged, match="another version of mzshare made"):
        LoadGeneratorUpstream(AUCTION, old).check_identity(old)
    with pytest.raises(UpstreamChanged, match="no incarnation"):
        LoadGeneratorUpstream(AUCTION, "a-topics-id")


@pytest.mark.parametrize(
    ("generator", "names"),
    [
        ("counter", ["counter"]),
        ("auction", ["organizations", "users", "accounts", "auctions", "bids"]),
        ("key_value", ["key_value"]),
    ],
)
def test_its_references(generator: str, names: list[str]) -> None:
    spec = LoadGeneratorSpec(generator=generator)  # type: ignore[arg-type]
    found = LoadGeneratorUpstream(spec).references()
    assert [each.name for each in found] == names
    assert {each.namespace for each in found} == {generator}
    assert [each.partitions for each in found] == ([(0,), (1,), (2,), (3,), (4,)] if len(names) > 1 else [()])


def test_a_reference_has_columns_and_keys() -> None:
    accounts = LoadGeneratorUpstream(AUCTION).references()[2]
    assert accounts.keys == ("id",)
    assert accounts.columns == tuple(ColumnSpec(name=n, type="bigint") for n in ("id", "org_id", "balance"))


def test_sizes_are_those_of_its_records() -> None:
    spec = LoadGeneratorSpec(generator="key_value", value_size=1_000, partitions=2)
    sizes = LoadGeneratorUpstream(spec).record_sizes(Position({"0": 10}), Position({"0": 500, "1": 1}))
    assert sorted(sizes) == ["0", "1"]
    assert all(1_008 < size < 1_020 for size in sizes.values())


def test_what_executors_get_needs_nothing_else_of_ours(tmp_path: Path) -> None:
    """The archive comes first on the path, so a module that is missing in it is missing."""
    code = f"""
import sys
sys.path.insert(0, {str(pack_writer(tmp_path))!r})
import importlib.abc
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pydantic", "sqlalchemy", "deltalake", "confluent_kafka", "airflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
from airflow_provider_mzshare.connectors.load_generator import datasource
from airflow_provider_mzshare.storage.fanout import writer
assert "mzshare_fanout.zip" in datasource.__file__ and "mzshare_fanout.zip" in writer.__file__
reader = datasource.LoadGeneratorSource({{
    "plan": {LoadGeneratorUpstream(AUCTION)._plan.to_json()!r}, "lower": "{{}}", "upper": '{{"4": 7}}', "tasks": "1"
}}).reader(None)
from airflow_provider_mzshare.connectors.records import from_spark
print(sum(batch.num_rows for part in reader.partitions() for batch in from_spark(reader.read(part))))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "7"
