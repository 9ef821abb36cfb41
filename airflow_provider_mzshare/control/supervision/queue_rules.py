"""Which of the backfills that should run get an app, and which wait for one: oldest first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mzshare.control.catalog.log.queue import Place
from airflow_provider_mzshare.control.supervision.actions import Action, GiveUp, Merge, Queue, Start


@dataclass(frozen=True)
class Slots:
    """:param limit: how many backfills may have an app at once. :param running: how many have, of all sources.
    :param queued: who waits, of all sources, with their places.
    """

    limit: int
    running: int
    queued: tuple[tuple[int, str], ...] = ()


def share_out(actions: Sequence[Action], slots: Slots) -> list[Action]:
    """The same actions, but only the oldest backfills are started while there is room; the others are queued.

    Backfills of other sources that have waited longer come first, even if only one source is looked at.
    """
    starts = {a.backfill_id: a for a in actions if isinstance(a, Start) and a.backfill_id}
    if not starts:
        return list(actions)
    lost = sum(1 for a in actions if isinstance(a, GiveUp) and a.backfill_id)
    room = max(0, slots.limit - slots.running + lost)
    merged = {one for a in actions if isinstance(a, Merge) for one in a.backfill_ids}
    others = [place for place in slots.queued if place[1] not in starts.keys() | merged]
    waiting = sorted([*others, *((start.since, one) for one, start in starts.items())])
    ordered = [
        _given(starts[one], number, room, len(waiting), slots.limit)
        for number, (_, one) in enumerate(waiting)
        if one in starts
    ]
    given = iter(ordered)
    return [next(given) if isinstance(a, Start) and a.backfill_id else a for a in actions]


def _given(start: Start, number: int, room: int, waiting: int, limit: int) -> Action:
    if number < room:
        return start
    place = Place(number + 1 - room, waiting - room)
    return Queue(start.subject, f"{place}: {at_most(limit)}", start.source_id, start.backfill_id)


def at_most(limit: int) -> str:
    return f"at most {limit} backfill{'s' * (limit != 1)} may run at once (MZSHARE_MAX_BACKFILLS)"
