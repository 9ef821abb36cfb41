"""When an app looks where the upstream ends: seldom, and only for tables that depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from airflow_provider_mzshare.connectors.base import Compaction, Upstream
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import EndSeen, SourceState, TableState
from airflow_provider_mzshare.errors import UpstreamUnreachable
from airflow_provider_mzshare.storage.apps import end_watch
from airflow_provider_mzshare.storage.apps.end_watch import EndWatch
from airflow_provider_mzshare.storage.apps.what_is_left import WhatIsLeft

U2 = ItemId("u2")
PLAIN = SourceState(
    ItemId("u1"), "active", "", Position(), tables={U2: TableState(U2, "live", 1, 1, Position(), Position())}
)
KEYED = replace(PLAIN, tables={U2: replace(PLAIN.tables[U2], keyed=True)})
SEEN = replace(KEYED, ends=(EndSeen(1, Position(), 10),))


class _Upstream:
    def __init__(self, compaction: Compaction | None) -> None:
        self.found, self.asked, self.away = compaction, 0, False

    def compaction(self) -> Compaction | None:
        self.asked += 1
        return self.found

    def end_offsets(self) -> Position:
        if self.away:
            raise UpstreamUnreachable("it is away")
        return Position({0: 7})


class _Store:
    def __init__(self) -> None:
        self.seen: list[tuple[int | None, int]] = []

    def see_end(self, end: Position, *, ago_ms: int, kept_ms: int | None, lag_ms: int) -> Mapping[ItemId, str]:
        assert (end, ago_ms >= 1) == (Position({0: 7}), True)
        self.seen.append((kept_ms, lag_ms))
        return {}


class _Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Time:
    found = _Time()
    monkeypatch.setattr(end_watch, "time", found)
    return found


def watch(upstream: _Upstream, store: _Store) -> EndWatch:
    return EndWatch(cast("Upstream", upstream), store, JobId("j"))


def test_nothing_is_asked_for_tables_that_append(clock: _Time) -> None:
    upstream, store = _Upstream(Compaction(60_000)), _Store()
    watch(upstream, store).look(PLAIN, now=True)
    assert (upstream.asked, store.seen) == (0, [])


@pytest.mark.parametrize(
    ("compaction", "looks", "asks"),
    [(None, 11, 11), (Compaction(24 * 3_600_000), 61, 11), (Compaction(20_000, 20_000), 301, 301)],
)
def test_how_often_an_upstream_is_asked(clock: _Time, compaction: Compaction | None, looks: int, asks: int) -> None:
    """In ten minutes; more often where it keeps deletes for a short time."""
    upstream, store = _Upstream(compaction), _Store()
    looker = watch(upstream, store)
    for _ in range(601):
        looker.look(KEYED)
        clock.now += 1
    assert (len(store.seen), upstream.asked) == (looks, asks)
    assert set(store.seen) == {(compaction.kept_ms, compaction.lag_ms) if compaction else (None, 0)}


def test_an_upstream_that_is_away_does_no_harm_once_an_end_is_known(clock: _Time) -> None:
    """The last end counts then. Without any, nothing may be read."""
    upstream, store = _Upstream(Compaction(60_000)), _Store()
    upstream.away = True
    looker = watch(upstream, store)
    with pytest.raises(UpstreamUnreachable):
        looker.look(KEYED)
    assert looker.look(SEEN) == {}
    upstream.away = False
    clock.now += 1
    looker.look(SEEN)
    assert len(store.seen) == 1


def test_what_is_gone_is_not_asked_for() -> None:
    left = WhatIsLeft(cast("object", None))  # type: ignore[arg-type]
    lower, upper = Position({0: 5, 1: 5}), Position({0: 20, 1: 20})
    assert left.begin(lower, upper) == lower
    left.gone = Position({0: 9, 1: 30, 2: 4})
    assert left.begin(lower, upper) == Position({0: 9, 1: 20})
