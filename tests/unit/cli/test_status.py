"""What a person sees of a status: short enough for a terminal."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.cli.status import for_people, note_on


@pytest.mark.parametrize(
    ("offsets", "shown"),
    [
        ({}, ""),
        ({"0": 1667, "1": 1666}, "0:1667 1:1666"),
        ({str(n): 10 for n in range(4)}, "0:10 1:10 2:10 3:10"),
        ({str(n): 10 for n in range(5)}, "5 partitions, 50 in all"),
    ],
)
def test_positions_stay_short(offsets: dict[str, int], shown: str) -> None:
    assert for_people({"position": offsets, "lag": 0, "lag_asked": True})["position"] == shown


@pytest.mark.parametrize(
    ("lag", "asked", "shown"), [(0, True, 0), (7, True, 7), (None, True, "?"), (None, False, None)]
)
def test_a_lag_that_was_asked_for_and_not_answered_is_a_question_mark(
    lag: int | None, asked: bool, shown: object
) -> None:
    assert for_people({"position": {}, "lag": lag, "lag_asked": asked})["lag"] == shown


def test_an_age_has_its_unit() -> None:
    assert for_people({"position": {}, "lag": 0, "lag_asked": True, "age_seconds": 1.5})["age"] == "1.5 s"


@pytest.mark.parametrize(
    ("row", "note"),
    [
        ({"name": "public.s", "reason": "", "hint": ""}, ""),
        ({"name": "public.s", "reason": "", "hint": "", "errors": 0}, ""),
        ({"name": "public.s", "reason": "It broke.", "hint": ""}, "public.s: It broke"),
        ({"name": "public.s", "reason": "it broke", "hint": "mzshare logs"}, "public.s: it broke. Try: mzshare logs"),
        (
            {"name": "public.t", "reason": "", "hint": "mzshare read t --errors", "errors": 2},
            "public.t: 2 records did not decode. Try: mzshare read t --errors",
        ),
    ],
)
def test_a_reason_and_its_next_step_are_one_line(row: dict[str, object], note: str) -> None:
    assert note_on(row) == note
