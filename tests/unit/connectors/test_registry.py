"""Kinds of sources by name: what is stored of them is read by its kind, and one that is missing or broken says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.registry import (
    CONNECTORS,
    AnySourceSpec,
    find_kind,
    kind_of,
    kinds,
    kinds_by_words,
    parse_source_spec,
)
from airflow_provider_mzshare.core.specs import Spec, TableSpec
from airflow_provider_mzshare.errors import KindNotLoaded, UnknownKind
from tests.support.plugins import installed

SOURCES = [
    (
        '{"version":1,"kind":"kafka","connection":"c","topic":"t","start":{"mode":"offset","asked":{"0":3},"timestamp":null},'
        '"legacy":null}'
    ),
    (
        '{"version":1,"kind":"kafka","connection":"c","topic":"t","start":{"mode":"earliest","asked":{},"timestamp":null},'
        '"legacy":{"shape":"single","schemas":[],"tables":[],"progress":null,"text_columns":[],"exclude_columns":[]}}'
    ),
    (
        '{"version":1,"kind":"load_generator","generator":"auction","seed":0,"tick_interval_ms":1000,"batch_size":1,'
        '"up_to":null,"keys":100,"value_size":16,"partitions":1,"legacy":null}'
    ),
]
DETAILS = [
    '{"version":1,"kind":"kafka","topic":"t","metadata_columns":[{"what":"offset","name":"o"}]}',
    (
        '{"version":1,"kind":"load_generator","output":"bids","partitions":[4],"columns":[{"name":"id","type":"bigint"}],'
        '"keys":["id"]}'
    ),
]


class Holder(Spec):
    spec: AnySourceSpec


@pytest.mark.parametrize("text", SOURCES)
def test_a_source_is_stored_as_ever(text: str) -> None:
    spec = parse_source_spec(text)
    assert type(spec) is CONNECTORS.get(spec.kind).spec
    assert spec.model_dump_json() == text
    assert Holder.model_validate_json(f'{{"spec":{text}}}').model_dump_json() == f'{{"spec":{text}}}'


@pytest.mark.parametrize("text", DETAILS)
def test_the_details_of_a_table_are_stored_as_ever(text: str) -> None:
    table = TableSpec.model_validate({"reference": "t", "format": "json", "details": json.loads(text)})
    assert table.details is not None
    assert type(table.details) is CONNECTORS.get(table.details.kind).details
    assert f'"details":{text}' in table.model_dump_json()
    assert TableSpec.model_validate_json(table.model_dump_json()) == table


def test_what_a_newer_writer_stored_is_refused() -> None:
    for text in (SOURCES[0].replace('"version":1', '"version":2'), SOURCES[0].replace("{", '{"sharding":1,', 1)):
        with pytest.raises(ValueError, match=r"version|sharding"):
            parse_source_spec(text)
    with pytest.raises(ValueError, match="sharding"):
        TableSpec.model_validate({"reference": "t", "format": "json", "details": {"kind": "kafka", "sharding": 1}})


def test_a_kind_that_nobody_has_is_told_with_what_to_do() -> None:
    with pytest.raises(
        UnknownKind, match="no connector 'pulsar' here; there are: kafka, load_generator, journal"
    ) as unknown:
        kind_of(parse_source_spec('{"kind":"pulsar"}'))
    assert "install the package" in unknown.value.hint


def test_what_is_stored_of_such_a_kind_is_kept_as_it_is() -> None:
    text = '{"version":1,"kind":"pulsar","topic":"t","legacy":null}'
    assert parse_source_spec(text).model_dump_json() == text
    details = '{"version":1,"kind":"pulsar","of":["a"]}'
    table = TableSpec.model_validate({"reference": "t", "format": "json", "details": json.loads(details)})
    assert f'"details":{details}' in table.model_dump_json()
    assert TableSpec.model_validate_json(table.model_dump_json()) == table


def test_a_package_that_is_broken_does_not_stop_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mzshare.connectors]\nbroken = no_such_module:KIND\n")
    with installed(tmp_path, CONNECTORS):
        assert "broken" in CONNECTORS
        assert [kind.kind for kind in kinds()] == ["kafka", "load_generator", "journal", "postgres"]
        assert "connector 'broken' (no_such_module:KIND) cannot be loaded" in caplog.text
        assert [*kinds_by_words()] == ["KAFKA", "LOAD GENERATOR", "JOURNAL", "POSTGRES"]
        with pytest.raises(KindNotLoaded, match="ModuleNotFoundError"):
            find_kind("broken")
