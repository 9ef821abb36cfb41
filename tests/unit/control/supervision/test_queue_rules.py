"""Who gets an app and who waits: never more than may run, the oldest first, whoever asks and of whichever source."""

from __future__ import annotations

from airflow_provider_mzshare.control.catalog.log.queue import Place, ordinal
from airflow_provider_mzshare.control.supervision.actions import Action, GiveUp, Merge, Queue, Start
from airflow_provider_mzshare.control.supervision.decisions import (
    BackfillView,
    JobView,
    Overview,
    SourceView,
    plan,
    plan_queued,
)
from airflow_provider_mzshare.control.supervision.queue_rules import Slots

RUNS = JobView("ingest", "running", age=100.0, process="alive")
FILLS = JobView("fill", "running", age=100.0, process="alive")
GONE = JobView("fill", "running", age=100.0, process="gone")


def source(number: int, *backfills: BackfillView, merges: tuple[tuple[str, ...], ...] = ()) -> SourceView:
    return SourceView(f"u{number}", f"public.s{number}", "active", "running", 9, (RUNS,), backfills, merges=merges)


def waiting(name: str, since: int, *jobs: JobView) -> BackfillView:
    return BackfillView(name, (f"public.{name}",), jobs, since)


def started(actions: list[Action]) -> list[str]:
    return [action.backfill_id for action in actions if isinstance(action, Start)]


def queued(actions: list[Action]) -> dict[str, str]:
    return {action.backfill_id: action.why.partition(":")[0] for action in actions if isinstance(action, Queue)}


def test_twelve_backfills_of_twelve_sources_start_no_more_apps_than_may_run_and_the_oldest_first() -> None:
    sources = tuple(source(n, waiting(f"b{n:02}", since=100 - n)) for n in range(1, 13))
    actions = plan(Overview(sources, slots=Slots(limit=3, running=1)))
    assert started(actions) == ["b12", "b11"]
    assert next(iter(queued(actions).items())) == ("b10", "queued, 1st of 10")
    assert queued(actions)["b01"] == "queued, 10th of 10"
    (why,) = {action.why.partition(": ")[2] for action in actions if isinstance(action, Queue)}
    assert why == "at most 3 backfills may run at once (MZSHARE_MAX_BACKFILLS)"


def test_twelve_backfills_of_one_source_are_merged_and_take_one_place() -> None:
    names = tuple(f"b{n:02}" for n in range(12))
    one = source(1, *(waiting(name, since=n + 5) for n, name in enumerate(names)), merges=(names,))
    merge, start = plan(Overview((one,), slots=Slots(limit=1, running=0)))
    assert isinstance(merge, Merge)
    assert merge.backfill_ids == names
    assert isinstance(start, Start)
    assert (start.backfill_id, start.since) == ("b11", 5), "at the place of the oldest"
    assert start.subject.count("public.") == 12
    merge, queue = plan(Overview((one,), slots=Slots(limit=1, running=1, queued=((5, "b00"), (6, "b01")))))
    assert isinstance(queue, Queue)
    assert queued([queue]) == {"b11": "queued, 1st of 1"}, "those that go into it do not wait beside it"


def test_a_source_that_is_asked_to_stop_merges_nothing() -> None:
    view = SourceView("u1", "s", "active", "stopped", 2, (), (waiting("a", 1), waiting("b", 2)), (), (("a", "b"),))
    assert plan(Overview((view,), slots=Slots(1, 0))) == []


def test_one_who_asks_for_one_source_comes_after_those_of_others_that_wait() -> None:
    mine = Overview((source(2, waiting("mine", 7)),), slots=Slots(limit=2, running=1, queued=((3, "other"),)))
    assert queued(plan(mine, at_once=True)) == {"mine": "queued, 1st of 1"}
    older = Overview((source(2, waiting("mine", 2)),), slots=Slots(limit=2, running=1, queued=((3, "other"),)))
    assert started(plan(older, at_once=True)) == ["mine"]
    roomy = Overview((source(2, waiting("mine", 7)),), slots=Slots(limit=3, running=1, queued=((3, "other"),)))
    assert started(plan(roomy)) == ["mine"], "there is room for both"


def test_the_room_of_a_lost_app_is_given_to_who_waits_the_longest() -> None:
    lost = source(1, waiting("lost", 900, GONE))
    actions = plan(Overview((lost, source(2, waiting("next", 4))), slots=Slots(1, 1, ((4, "next"),))))
    assert [type(action) for action in actions] == [GiveUp, Start, Queue]
    assert started(actions) == ["next"]
    assert queued(actions) == {"lost": "queued, 1st of 1"}


def test_apps_that_run_are_left_alone_however_small_the_limit_has_become() -> None:
    three = tuple(source(n, waiting(f"b{n}", n, FILLS)) for n in range(3))
    assert plan(Overview(three, slots=Slots(limit=1, running=3))) == []


def test_who_only_waits_starts_what_is_queued_and_not_what_nobody_asked_for() -> None:
    sources = (source(1, waiting("unasked", 1)), source(2, waiting("queued", 5)), source(3, waiting("later", 6)))
    slots = Slots(limit=2, running=1, queued=((5, "queued"), (6, "later")))
    assert started(plan_queued(Overview(sources, slots=slots))) == ["queued"]
    assert plan_queued(Overview(sources, slots=Slots(2, 2, slots.queued))) == []
    assert plan_queued(Overview(sources, slots=Slots(2, 0))) == []
    both = source(4, waiting("old", 1), waiting("new", 2), merges=(("old", "new"),))
    merge, start = plan_queued(Overview((both,), slots=Slots(1, 0, ((1, "old"),))))
    assert (type(merge), started([start])) == (Merge, ["new"])


def test_places_are_told_in_words() -> None:
    told = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th"}
    assert {number: ordinal(number) for number in told} == told
    assert str(Place(3, 11)) == "queued, 3rd of 11"
