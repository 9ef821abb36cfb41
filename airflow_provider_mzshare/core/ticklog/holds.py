"""Read holds: what keeps ``since`` of a table back, as decisions without input, output or clock.

A store loads the hold and its table behind the source's lock, asks one of these, and writes what comes back in the same
transaction. ``since`` is moved behind the same lock: so whoever has taken a hold can read from its time on, until the
hold is released or dropped. Whoever learns that neither has happened, by a heartbeat that counts, knows just that.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from unicodedata import category

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import NotReadable, TerminalError

LONGEST_LIMIT_MS = 366 * 86_400_000
"""A hold that is never dropped would be found when the disk is full."""

LONGEST_NAME = 1_000
"""Bytes. A name is a key in the catalog's database; those that a DAG and its task make have some 550."""


@dataclass(frozen=True)
class Hold:
    """One hold. Times are milliseconds; all but ``at`` are by the clock of the catalog's database."""

    name: str
    table_id: ItemId
    at: int
    """The table stays readable from this time on."""
    holder: str
    claim: str
    """Of whoever entered it last; others have lost it. Drawn at random, because a restored catalog repeats numbers."""
    taken_at: int
    heartbeat: int
    limit_ms: int
    """It is dropped when its last heartbeat is older than this."""
    dropped_at: int | None = None
    why: str | None = None
    """Why it was dropped. The row stays, because its holder has to be told."""
    named: bool = True
    """Its holder chose the name, and may come back for it."""

    @property
    def line(self) -> str:
        """For a log, once it was dropped."""
        return f"the read hold {self.name!r} on table {self.table_id} at {self.at} was dropped: {self.why}"


@dataclass(frozen=True)
class Held:
    """The table of a hold, as the same transaction sees it."""

    table_id: ItemId
    table: str
    """As it is shown."""
    since: int
    upper: int
    filling: bool = False
    """A backfill fills it for the first time: ``since`` goes along with each of its groups."""
    dropped: bool = False


@dataclass(frozen=True)
class Wanted:
    """What a holder asks for. ``at`` None: where the hold of this name stands, or the table's newest time."""

    name: str
    at: int | None
    holder: str
    claim: str
    limit_ms: int
    named: bool = True


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class HoldLost(TerminalError):
    """A hold that its holder does not have any more: what it was to keep may be gone."""


class HoldDropped(HoldLost):
    """It was dropped: its holder was not heard of for too long, or somebody dropped it, or its table."""

    def __init__(self, hold: Hold, held: Held) -> None:
        self.name, self.table, self.at, self.why = hold.name, held.table, hold.at, hold.why
        self.since, self.dropped_at = held.since, hold.dropped_at
        self.can_go_on = not held.dropped and held.since <= hold.at
        """Nothing that it was to keep is gone yet."""
        if held.dropped:
            now, hint = "", f"mzshare holds drop {shlex.quote(hold.name)}"
        elif self.can_go_on:
            now = f"; {held.table} can still be read from {hold.at} on"
            hint = f"take it again with at={hold.at}"
        else:
            now = f"; {held.table} can now be read from {held.since} on"
            hint = f"read {held.table} anew, and take the hold with the time of that read as its at"
        super().__init__(
            f"the hold {hold.name!r} on {held.table} at {hold.at} was dropped at {hold.dropped_at}: {hold.why}{now}",
            hint=hint,
        )


class HoldTakenOver(HoldLost):
    """Somebody else has entered the hold of this name since."""

    def __init__(self, hold: Hold, held: Held) -> None:
        self.name, self.table, self.holder = hold.name, held.table, hold.holder
        super().__init__(
            f"the hold {hold.name!r} was taken over by {hold.holder}: it stands on {held.table} at {hold.at}",
            hint="another name for each holder that runs at the same time",
        )


class UnknownHold(HoldLost):
    """No hold has this name: it was released or forgotten, or the catalog was restored from before it was taken."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no hold {name!r}", hint="mzshare holds")


class HoldEnded(HoldLost):
    """The context of the hold has ended, so nobody beats for it any more. ``kept``: it stands until its limit."""

    def __init__(self, hold: Hold, table: str, *, kept: bool) -> None:
        self.name, self.table, self.at = hold.name, table, hold.at
        now = "nobody keeps it alive any more" if kept else "it was released"
        super().__init__(
            f"the context of the hold {hold.name!r} on {table} has ended, and {now}",
            hint="enter the hold of this name again" if kept else "ask inside the context",
        )


class HoldRefused(TerminalError):
    """A hold that cannot be had, or cannot be where it is asked for."""


# ── taking and keeping ────────────────────────────────────────────────────────────────────────────────────────────────


def take(found: Hold | None, held: Held, wanted: Wanted, now: int) -> Hold:
    """The hold that ``wanted`` asks for: a new one, or the one of this name, with which its holder goes on.

    :param found: the hold of this name, if there is one.
    """
    if not 0 < wanted.limit_ms <= LONGEST_LIMIT_MS:
        raise HoldRefused(f"the limit of a hold is more than 0 s and at most {LONGEST_LIMIT_MS // 1000} s")
    if found is not None and found.dropped_at is None:
        return _go_on(found, held, wanted, now)
    if found is not None and wanted.at is None:
        # Where it stood is its holder's to say again: silently, it would begin later, and miss what was between.
        raise HoldDropped(found, held)
    if found is None:
        _check_name(wanted.name)
    at = held.upper - 1 if wanted.at is None else wanted.at
    _check_readable(held, at)
    return Hold(
        name=wanted.name,
        table_id=held.table_id,
        at=at,
        holder=wanted.holder,
        claim=wanted.claim,
        taken_at=now,
        heartbeat=now,
        limit_ms=wanted.limit_ms,
        named=wanted.named,
    )


def _check_name(name: str) -> None:
    """Of a new hold: people have to be able to write it, and databases to keep it."""
    size = len(name.encode(errors="replace"))
    if not 0 < size <= LONGEST_NAME:
        raise HoldRefused(f"the name of a hold has 1 to {LONGEST_NAME:,} bytes, and this one has {size:,}")
    if any(category(char) in ("Cc", "Cs") for char in name):
        raise HoldRefused(f"the name of a hold has no control characters, and {name!r} has")


def _go_on(found: Hold, held: Held, wanted: Wanted, now: int) -> Hold:
    if found.table_id != held.table_id:
        raise HoldRefused(
            f"the hold {found.name!r} of {found.holder} stands on table {found.table_id}, and {held.table} is table "
            f"{held.table_id}",
            hint=f"another name; or, if names were swapped, mzshare holds drop {shlex.quote(found.name)}",
        )
    at = found.at if wanted.at is None else wanted.at
    after = _moved(found, held, at, now)
    return replace(after, holder=wanted.holder, claim=wanted.claim, limit_ms=wanted.limit_ms)


def refresh(found: Hold, held: Held, claim: str, now: int) -> Hold:
    """A heartbeat. A hold that nobody has dropped yet is as good as new, however late its heartbeat comes.

    :param claim: of whoever sends it.
    """
    hold = _own(found, held, claim)
    return replace(hold, heartbeat=max(now, hold.heartbeat))


def move(found: Hold, held: Held, claim: str, at: int, now: int) -> Hold:
    """What is before ``at`` is not needed any more."""
    return _moved(_own(found, held, claim), held, at, now)


def release(found: Hold, held: Held, claim: str) -> Hold:
    """The hold that goes away, with nothing to be told later."""
    return _own(found, held, claim)


def _own(found: Hold, held: Held, claim: str) -> Hold:
    if found.claim != claim:
        raise HoldTakenOver(found, held)
    if found.dropped_at is not None:
        raise HoldDropped(found, held)
    return found


def _moved(hold: Hold, held: Held, at: int, now: int) -> Hold:
    """Only forward: a hold stands behind ``since``, but nothing says how far behind."""
    if at < hold.at:
        raise HoldRefused(
            f"the hold {hold.name!r} on {held.table} stands at {hold.at} and cannot go back to {at}",
            hint="a hold of another name, for the earlier time",
        )
    if at > hold.at:
        _check_readable(held, at)
    return replace(hold, at=at, heartbeat=max(now, hold.heartbeat))


def _check_readable(held: Held, at: int) -> None:
    """The rule of reads: ``since <= at < upper``."""
    if held.dropped:
        raise HoldRefused(f"{held.table} was dropped")
    live = f"mzshare wait {shlex.quote(held.table)} --for live"
    if held.upper == 0:
        raise NotReadable(f"{held.table} has no committed tick yet", hint=live)
    if held.filling:
        raise HoldRefused(
            f"{held.table} cannot be held while a backfill fills it: it can only be read where the backfill stands",
            hint=live,
        )
    readable = f"it can be read from {held.since} to {held.upper - 1}"
    if at < held.since:
        raise NotReadable(f"{held.table} cannot be held at {at}, which is gone or never was: {readable}")
    if at >= held.upper:
        raise NotReadable(f"{held.table} cannot be held at {at}, which is not final yet: {readable}")


# ── dropping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def drop(hold: Hold, now: int, why: str) -> Hold:
    return replace(hold, dropped_at=now, why=why)


def dead(holds: Iterable[Hold], now: int) -> Sequence[Hold]:
    """Those whose holders were not heard of for longer than their limits, dropped."""
    late = [hold for hold in holds if hold.dropped_at is None and now - hold.heartbeat > hold.limit_ms]
    return [drop(hold, now, f"{hold.holder} was not heard of for {hold.limit_ms / 1000:g} s") for hold in late]


def oldest(holds: Iterable[Hold]) -> Mapping[ItemId, int]:
    """By table, the time that ``since`` may not pass."""
    found: dict[ItemId, int] = {}
    for hold in holds:
        if hold.dropped_at is None:
            found[hold.table_id] = min(hold.at, found.get(hold.table_id, hold.at))
    return found
