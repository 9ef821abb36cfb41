"""Specs: versioned, strict about what they do not know, and able to tell a table's columns."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from airflow_provider_mzshare.core.ids import format_item_id, is_item_id, new_collection_id
from airflow_provider_mzshare.core.schema import check_type
from airflow_provider_mzshare.core.specs import TableSpec


def test_a_spec_of_a_newer_writer_is_refused() -> None:
    text = TableSpec(reference="t", format="json").model_dump_json()
    assert TableSpec.model_validate_json(text).retain_history_seconds == 86_400
    with pytest.raises(ValidationError, match="version"):
        TableSpec.model_validate_json(text.replace('"version":1', '"version":2'))
    with pytest.raises(ValidationError, match="sharding"):
        TableSpec.model_validate_json(text.replace("{", '{"sharding":1,', 1))


@pytest.mark.parametrize("type_name", ["bigint", "numeric(38,9)", "timestamptz", "jsonb"])
def test_known_types(type_name: str) -> None:
    check_type(type_name)


@pytest.mark.parametrize("type_name", ["int", "numeric", "numeric(39,0)", "numeric(3,4)", "numeric(0,0)", "BIGINT", ""])
def test_unknown_types_are_refused_by_name(type_name: str) -> None:
    with pytest.raises(ValueError, match=r"type|precision"):
        check_type(type_name)


def test_ids() -> None:
    assert format_item_id(7) == "u7"
    assert is_item_id("u7")
    assert not any(is_item_id(text) for text in ("u0", "u", "7", "u-1", "u7x"))
    one, other = (new_collection_id(format_item_id(7), 1, "data") for _ in range(2))
    assert one != other, "a restored catalog must not take an old folder for a new one"
