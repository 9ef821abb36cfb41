"""Names as they are typed on a command line."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.errors import MzShareError


def test_names_are_read_as_in_sql() -> None:
    assert str(typed_name("Shop.Orders")) == "shop.orders"
    assert str(typed_name('"My Orders"')) == 'public."My Orders"'


@pytest.mark.parametrize("text", ["ingest-nope", "a.b.c", "", "a b", '"open', "t; DROP TABLE t"])
def test_what_is_no_name_is_told_so_without_a_place_in_a_statement(text: str) -> None:
    with pytest.raises(MzShareError) as caught:
        typed_name(text)
    assert caught.value.message == f'{text!r} is not a name; write [schema.]name, or "quoted"'
