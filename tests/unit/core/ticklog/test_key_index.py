"""What takes an index over an entry, and when it has to be built anew."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.core.ticklog.key_index import Move, Seen, index_move

PLANS, MAPPINGS = {5: "plan"}, {5: "compaction"}
LOG = frozenset(range(8))


def move(entry: Seen | None, *, describes: int = 4, loaded: int = 7, log: frozenset[int] = LOG) -> Move:
    return index_move(describes, entry, loaded=loaded, log=log, plans=PLANS, mappings=MAPPINGS)


@pytest.mark.parametrize(
    ("entry_id", "is_whole", "wanted"),
    [
        ("plan", True, Move.OWN),
        ("plan", False, Move.OWN),
        ("compaction", True, Move.MAPPED),
        ("compaction", False, Move.MAPPED),
        ("another's", True, Move.FOLLOWED),
        ("another's", False, Move.REBUILD),
        (None, True, Move.FOLLOWED),
        (None, False, Move.REBUILD),
    ],
)
def test_an_entry_is_known_by_its_version_and_its_id(entry_id: str | None, is_whole: bool, wanted: Move) -> None:
    assert move(Seen(5, entry_id, is_whole)) is wanted


@pytest.mark.parametrize("entry_id", ["plan", "compaction"])
def test_the_id_of_another_version_says_nothing(entry_id: str) -> None:
    assert move(Seen(6, entry_id, is_whole=True), describes=5) is Move.FOLLOWED


def test_an_index_moves_by_one_entry_and_never_past_the_loaded_version() -> None:
    assert move(None) is Move.REBUILD
    assert move(Seen(6, "x", is_whole=True)) is Move.REBUILD
    assert move(Seen(4, "x", is_whole=True)) is Move.REBUILD
    assert move(Seen(5, "plan", is_whole=True), loaded=5) is Move.OWN
    assert move(Seen(5, "plan", is_whole=True), loaded=4) is Move.REBUILD


@pytest.mark.parametrize("entry_id", ["plan", "compaction", "another's", None])
def test_an_entry_in_a_hole_is_no_part_of_the_log(entry_id: str | None) -> None:
    assert move(Seen(5, entry_id, is_whole=True), log=LOG - {5}) is Move.REBUILD


def test_entries_without_an_id_are_never_taken_for_a_plan() -> None:
    plans: dict[int, str] = {5: None}  # type: ignore[dict-item]
    seen = Seen(5, None, is_whole=True)
    assert index_move(4, seen, loaded=7, log=LOG, plans=plans, mappings=plans) is Move.FOLLOWED
