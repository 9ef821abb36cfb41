"""Names inside old-style definitions: whatever they hold, they come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.legacy.texts import name_of, parts_of, sql_of
from airflow_provider_mzshare.errors import StatementError

PARTS = st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=4)


@given(PARTS)
def test_parts_come_back(parts: list[str]) -> None:
    assert parts_of(sql_of(parts)) == tuple(parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Bids", ("bids",)),
        ('auction."Bids"', ("auction", "Bids")),
        ('"a.b"."c""d"."$(x) {{ y }} --conf 🦊"', ("a.b", 'c"d', "$(x) {{ y }} --conf 🦊")),
    ],
)
def test_words_are_folded_and_quotes_are_not(text: str, parts: tuple[str, ...]) -> None:
    assert parts_of(text) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a b", '"a', '""', 'a"b"', '"a"b', 'a."b"".c'])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(StatementError, match="is not a name"):
        parts_of(text)


def test_a_name_without_a_schema_is_beside_its_source() -> None:
    assert name_of("b", "shop") == QualifiedName("shop", "b")
    assert name_of('x."B"', "shop") == QualifiedName("x", "B")
    with pytest.raises(StatementError, match="is not a name"):
        name_of("a.b.c", "shop")
