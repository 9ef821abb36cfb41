"""The door for Python users: what it does is what the commands do, and it loads nothing before it is asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy
import pytest

from airflow_provider_mzshare import MzShare, connect
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.core import arguments
from airflow_provider_mzshare.core.arguments import BadArgument
from airflow_provider_mzshare.errors import JobFailed, MzShareError, NotReadable, TerminalError, WaitTimeout
from tests.support.filled import Filled

TICKS = 4


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    """``orders`` and ``amounts`` have a row for each tick, and one record that is none."""
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        made = Filled(catalog, tmp_path)
        source = made.source()
        made.table(source, "orders", "id bigint, amount bigint")
        made.table(source, "amounts", "amount bigint")
        for number in range(TICKS):
            made.feed(source, [{"id": number, "amount": 7}])
        made.feed(source, [{"id": "x", "amount": 1}])
        yield made


@pytest.fixture
def mz(filled: Filled, tmp_path: Path) -> Iterator[MzShare]:
    with connect(home=tmp_path) as found:
        yield found


def test_connecting_looks_at_nothing(tmp_path: Path) -> None:
    mz = connect(home=tmp_path / "nowhere")
    assert mz.settings.warehouse == str(tmp_path / "nowhere" / "warehouse")
    mz.close()
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(MzShareError, match="no mzshare catalog"):
        mz.read("orders")
    assert not (tmp_path / "nowhere").exists(), "a read makes nothing"


def test_the_package_and_its_door_load_neither_airflow_nor_spark(tmp_path: Path) -> None:
    code = f"""
import sys
from airflow_provider_mzshare import connect
connect(home={str(tmp_path)!r})
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {{"airflow", "pyspark", "sqlalchemy", "deltalake"}}))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


def test_statements_make_a_home_and_answer(tmp_path: Path) -> None:
    with connect(home=tmp_path / "home") as mz:
        trial = mz.sql("CREATE SOURCE s FROM LOAD GENERATOR COUNTER", dry_run=True)
        assert [result.command for result in trial] == ["CREATE SOURCE"]
        made = mz.sql("CREATE SOURCE s FROM LOAD GENERATOR COUNTER; CREATE TABLE t FROM SOURCE s (REFERENCE counter)")
        assert [result.id for result in made] == ["u1", "u2"]
        (shown,) = mz.sql("SHOW TABLES")
        assert [row["name"] for row in shown.rows or ()] == ["public.t"]
        assert [source.health for source in mz.status().sources] == ["waiting"]
        with pytest.raises(MzShareError, match="line 1"):
            mz.sql("CREATE NOTHING")


def test_rows_as_arrow_now_and_as_of(mz: MzShare, filled: Filled) -> None:
    assert mz.read("orders").num_rows == TICKS
    assert mz.read("orders", columns=["id"], limit=2).to_pydict() == {"id": [0, 1]}
    assert sorted(mz.read("orders", tick=2).column("id").to_pylist()) == [0, 1]
    times = mz.sql("SELECT mz_timestamp FROM mz_ticks ORDER BY mz_timestamp")[0].rows or []
    third = int(times[2]["mz_timestamp"])
    assert mz.read("orders", as_of=third).num_rows == 3
    moment = datetime.fromtimestamp((third + 0.5) / 1000, timezone.utc)
    assert mz.read("orders", as_of=moment).num_rows == 3
    with pytest.raises(BadArgument, match="it takes a time with a zone"):
        mz.read("orders", as_of=datetime(2026, 1, 1))
    with mz.open("orders", system_columns=True) as batches:
        assert "_mz_offset" in batches.schema.names
        assert sum(batch.num_rows for batch in batches) == TICKS
    assert mz.read("orders", errors=True).column("error").to_pylist() == ['field "id": expected bigint, got string']


LARGE = 2**63


@pytest.mark.parametrize(
    ("call", "wrong", "says"),
    [
        ("read", {"as_of": LARGE}, "as_of cannot be 9223372036854775808: it takes a time"),
        ("read", {"as_of": "now"}, "as_of cannot be 'now': it takes a time"),
        ("read", {"tick": -LARGE - 1}, "tick cannot be -9223372036854775809: it takes a whole number of 64 bits"),
        ("read", {"tick": 10**5_000}, "tick cannot be a number of 16610 bits"),
        ("read", {"tick": 1.5}, "tick cannot be 1.5"),
        ("read", {"tick": True}, "tick cannot be True"),
        (
            "read",
            {"limit": LARGE},
            "limit cannot be 9223372036854775808: it takes a whole number of 64 bits, 0 or more",
        ),
        ("read", {"limit": -1}, "limit cannot be -1"),
        ("read", {"errors": 1}, "errors cannot be 1: it takes True or False"),
        ("changes", {"as_of": LARGE}, "as_of cannot be"),
        ("changes", {"up_to": -LARGE - 1}, "up_to cannot be"),
        ("changes", {"up_to": 1.5}, "up_to cannot be 1.5"),
        ("changes", {"snapshot": "first"}, "snapshot cannot be 'first': it takes True or False"),
        ("changes", {"progress": None}, "progress cannot be None"),
        ("changes", {"columns": "id"}, "columns cannot be 'id': it takes a list of names"),
        ("changes", {"columns": 5}, "columns cannot be 5"),
        ("changes", {"columns": ["id", 5]}, r"columns cannot be \['id', 5\]"),
        ("follow", {"as_of": datetime(2026, 1, 1)}, r"as_of cannot be datetime.datetime\(2026, 1, 1, 0, 0\)"),
        ("follow", {"system_columns": 0}, "system_columns cannot be 0"),
        ("follow", {"poll_seconds": None}, "poll_seconds cannot be None: it takes a number of seconds"),
        ("follow", {"poll_seconds": "1"}, "poll_seconds cannot be '1'"),
        ("follow", {"timeout": float("nan")}, "timeout cannot be nan"),
        ("follow", {"timeout": -1}, "timeout cannot be -1"),
    ],
)
def test_what_is_of_no_use_is_told_by_the_name_of_the_argument(
    mz: MzShare, call: str, wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadArgument, match=says), ExitStack() as opened:
        opened.enter_context(getattr(mz, call)("orders", **wrong))


@pytest.mark.parametrize("time", [LARGE - 1, -LARGE])
def test_the_largest_numbers_that_there_are_only_name_no_time(mz: MzShare, time: int) -> None:
    for wrong in ({"as_of": time}, {"as_of": time, "snapshot": False}, {"up_to": time}):
        with pytest.raises(NotReadable), mz.changes("orders", **wrong):
            pytest.fail(str(wrong))
    for wrong in ({"as_of": time}, {"tick": time}):
        with pytest.raises(NotReadable):
            mz.read("orders", **wrong)
        with pytest.raises(NotReadable):
            mz.read_cut(["orders"], **wrong)
    with pytest.raises(NotReadable):
        mz.read("s", tick=time)
    assert mz.read("orders", limit=LARGE - 1).num_rows == TICKS
    assert mz.read("s", limit=LARGE - 1).num_rows == 1


def test_numbers_of_numpy_are_numbers_and_a_time_is_exact(mz: MzShare, filled: Filled) -> None:
    third = mz.sql("SELECT mz_timestamp FROM mz_ticks ORDER BY mz_timestamp")[0].rows[2]["mz_timestamp"]  # type: ignore[index]
    assert mz.read("orders", as_of=numpy.int64(third), limit=numpy.int32(9)).num_rows == 3
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    for milliseconds in (*range(-9, 9_999), third):  # As seconds, times 1,000, some of them are a little less.
        assert arguments.moment("as_of", epoch + timedelta(milliseconds=milliseconds)) == milliseconds


def test_a_column_that_is_asked_for_twice_is_told(mz: MzShare) -> None:
    for read in (
        lambda: mz.read("orders", columns=["id", "amount", "id"]),
        lambda: mz.changes("orders", columns=["id", "id"]).__enter__(),
    ):
        with pytest.raises(NotReadable, match="column id is asked for twice"):
            read()


def test_several_tables_at_one_tick(mz: MzShare) -> None:
    cut = mz.read_cut(["orders", "amounts"], tick=3)
    assert {name: table.num_rows for name, table in cut.items()} == {"orders": 3, "amounts": 3}
    assert {name: table.num_rows for name, table in mz.read_cut(["orders", "amounts"]).items()} == {
        "orders": TICKS,
        "amounts": TICKS + 1,
    }


def test_where_a_table_is_and_how_it_is(mz: MzShare) -> None:
    assert Path(mz.path("orders"), "_delta_log").is_dir()
    assert mz.path("orders", errors=True) != mz.path("orders")
    status = mz.status("orders")
    assert [(table.name, table.status, table.rows, table.errors) for table in status.tables] == [
        ("public.orders", "live", TICKS, 1)
    ]
    assert [source.name for source in status.sources] == ["public.s"]
    assert len(mz.status("s").tables) == 2


def test_waiting_ends_with_what_is_live_fails_for_what_stalled_and_tells_the_next_step(
    mz: MzShare, filled: Filled
) -> None:
    looks: list[Progress] = []
    found = mz.wait("orders", timeout=0, report=looks.append)
    assert [(table.name, table.status) for table in found.tables] == [("public.orders", "live")]
    assert len(looks) == 1
    source = filled.source("other")
    late = filled.table(source, "late", "id bigint")
    with pytest.raises(WaitTimeout, match=r"late is not live after 0 s: the source is waiting") as timeout:
        mz.wait("late", timeout=0, start=False)
    assert timeout.value.hint == "mzshare start public.other"
    filled.feed(source, [{"id": 1}], stall=[late])
    with pytest.raises(JobFailed, match=r"table public\.late is stalled: full") as stalled:
        mz.wait("other", start=False)
    assert stalled.value.hint.startswith("mzshare sql 'ALTER TABLE public.late RESUME'")


def test_errors_are_ours_and_say_what_to_do(mz: MzShare) -> None:
    with pytest.raises(TerminalError, match="'nobody'") as unknown:
        mz.read("nobody")
    assert unknown.value.hint
    with pytest.raises(NotReadable):
        mz.read("orders", tick=99)
    with pytest.raises(MzShareError, match="broker"):
        mz.wait("orders", until="caught-up", timeout=0)


def test_a_table_that_is_live_is_not_waited_for(mz: MzShare) -> None:
    assert [table.status for table in mz.wait("s", timeout=0).tables] == ["live", "live"]


@pytest.mark.usefixtures("filled")
def test_a_connection_can_be_given(tmp_path: Path) -> None:
    nowhere = "127.0.0.1:9"
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": nowhere}}
    with connect(home=tmp_path, connections={"broker": kafka}) as mz, pytest.raises(MzShareError, match=nowhere):
        mz.verify("orders", everything=True)
