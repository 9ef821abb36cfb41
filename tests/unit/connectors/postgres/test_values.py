"""Small values of Postgres: places in its log, incarnations, names of slots, types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.postgres.identity import Identity, journal_of_slot, slot_name
from airflow_provider_mzshare.connectors.postgres.lsn import read_lsn, show_lsn
from airflow_provider_mzshare.connectors.postgres.place import PLACE
from airflow_provider_mzshare.connectors.postgres.types import TYPES, our_type
from airflow_provider_mzshare.core.ids import JournalId, journal_of, new_journal_id
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.schema import check_type


@given(st.integers(0, 2**63 - 1))
def test_a_place_in_the_log_is_written_as_postgres_does_and_read_again(number: int) -> None:
    assert read_lsn(show_lsn(number)) == number


def test_a_position_is_told_as_postgres_writes_it() -> None:
    assert show_lsn(0x1_016B3748) == "1/16B3748"
    assert PLACE.shown(Position({"lsn": 0x16B3748})) == {"lsn": "0/16B3748"}
    assert PLACE.tell((0x16B3748, 3)) == "lsn 0/16B3748, index 3"


@pytest.mark.parametrize("text", ["", "16B3748", "0/", "/1", "0/16B37480A", "0/G", "0/1 ", "-1/0"])
def test_what_is_no_place_in_the_log_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no LSN"):
        read_lsn(text)


def test_an_incarnation_says_who_the_database_is_and_where_its_journal_is() -> None:
    journal = new_journal_id()
    made = Identity(7710021478489679759, 3, 16384, journal)
    assert str(made) == f"postgres:7710021478489679759:3:16384:{journal}"
    assert Identity.read(str(made)) == made
    assert journal_of(str(made)) == journal


@pytest.mark.parametrize(
    "text", ["", "journal:ab", "postgres:1:1:1", "postgres:1:1:x:journal:ab", "pg:1:1:1:journal:ab"]
)
def test_what_is_no_incarnation_of_postgres_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no incarnation"):
        Identity.read(text)


def test_a_journal_is_found_at_the_end_of_an_incarnation_only() -> None:
    assert journal_of("journal:ab12") == "journal:ab12"
    assert journal_of("journal:ab12:more") is None
    assert journal_of("journal:") is None
    assert journal_of("xjournal:ab12") is None


def test_a_slots_name_is_its_sources_alone_and_says_whose_it_is() -> None:
    journal = new_journal_id()
    name = slot_name(journal)
    assert journal_of_slot(name) == journal
    assert name == name.lower()
    assert len(name.encode()) <= 63
    assert slot_name(new_journal_id()) != name


@pytest.mark.parametrize(
    "name", ["mzshare_", "mzshare_orders", "MZSHARE_ab", "debezium", "mzshare_ab_1", "xmzshare_ab"]
)
def test_other_slots_are_not_taken_for_ours(name: str) -> None:
    assert journal_of_slot(name) is None


def test_the_longest_name_of_a_slot_fits() -> None:
    assert len(slot_name(JournalId("journal:" + "a" * 80))) == 63


def _mod(precision: int, scale: int) -> int:
    return ((precision << 16) | (scale & 0x7FF)) + 4


@pytest.mark.parametrize(
    ("mod", "ours"),
    [
        (_mod(10, 2), "numeric(10,2)"),
        (_mod(38, 0), "numeric(38,0)"),
        (_mod(38, 38), "numeric(38,38)"),
        (_mod(1, 1), "numeric(1,1)"),
        (_mod(39, 0), None),
        (_mod(1000, 0), None),
        (_mod(5, -2), None),
        (_mod(3, 5), None),
        (-1, None),
    ],
)
def test_a_numeric_is_ours_where_all_its_values_fit(mod: int, ours: str | None) -> None:
    assert our_type(1700, mod) == ours


def test_every_type_that_is_named_is_one_of_ours() -> None:
    for name in TYPES.values():
        check_type(name)


def test_enums_are_text_and_unknown_types_are_nothing() -> None:
    assert our_type(99999, -1, is_enum=True) == "text"
    assert our_type(99999, -1) is None
    assert our_type(1186, -1) is None  # interval
