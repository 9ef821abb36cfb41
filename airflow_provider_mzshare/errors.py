"""Every error of ours: facts in, one clear sentence and the next step out. Retrying is decided by type."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


class MzShareError(Exception):
    """Base of all. ``hint`` is what the user can do next, usually a command."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint or type(self).hint
        super().__init__(message)

    @property
    def line(self) -> str:
        """One line, for a terminal or a status column."""
        text = " ".join(self.message.split()).rstrip(".")
        return f"{text}. Try: {self.hint}" if self.hint else f"{text}."


class TransientError(MzShareError):
    """May go away by itself: worth a retry."""


class TerminalError(MzShareError):
    """Will not go away by itself: a retry is useless."""


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class BadSetting(TerminalError):
    """A variable of the environment with a value we cannot use."""

    def __init__(self, name: str, value: str, wanted: str) -> None:
        self.name, self.value, self.wanted = name, value, wanted
        super().__init__(f"{name} cannot be {value!r}: it takes {wanted}", hint=f"unset {name}, or correct it")


# ── statements and the catalog ────────────────────────────────────────────────────────────────────────────────────────


def _run_sql(statement: str) -> str:
    """A command to paste: names in SQL may hold quotes of either kind."""
    return f"mzshare sql {shlex.quote(statement)}"


class StatementError(TerminalError):
    """A statement that cannot be read or is not supported, with its place: in the text, or an operator's argument."""

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        argument: str | None = None,
        hint: str = "",
    ) -> None:
        self.problem, self.line_number, self.column, self.argument = message, line, column, argument
        where = f"line {line}, column {column}: " if line is not None and column is not None else ""
        super().__init__(f"{f'{argument}: ' if argument else where}{message}", hint=hint)


class UnknownFormat(TerminalError):
    """A format that nobody has registered here. :param known: those that are."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"there is no format {name!r}; there are: {', '.join(known)}",
            hint="install the package that has it, here and where apps run",
        )


class UnknownEnvelope(TerminalError):
    """An envelope that nobody has registered here. :param known: those that are."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"there is no envelope {name!r}; there are: {', '.join(known)}",
            hint="install the package that has it, here and where apps run",
        )


class FormatNotLoaded(TerminalError):
    """A format that is registered, but cannot be loaded. :param target: ``module:attribute``."""

    def __init__(self, name: str, target: str, reason: str) -> None:
        self.name, self.target, self.reason = name, target, reason
        super().__init__(
            f"format {name!r} ({target}) cannot be loaded: {reason}", hint="repair or remove the package that has it"
        )


class UnknownItem(TerminalError):
    """:param kind: what was looked for; None for any kind. :param found: the kind of the item that has the name."""

    def __init__(self, kind: str | None, name: str, found: str | None = None) -> None:
        self.kind, self.name, self.found = kind, name, found
        missing = f"{kind} {name!r} does not exist" if kind else f"nothing is named {name!r}"
        hint = _run_sql(f"SHOW {kind.upper()}S") if kind in ("source", "table") else "mzshare status"
        super().__init__(f"{name!r} is a {found}, not a {kind}" if found and kind else missing, hint=hint)


class NameTaken(TerminalError):
    """:param wanted: the kind that was to be created; IF NOT EXISTS only helps if the existing item is of this kind."""

    def __init__(self, name: str, by: str, wanted: str) -> None:
        self.name, self.by, self.wanted = name, by, wanted
        hint = "another name, or CREATE … IF NOT EXISTS" if by == wanted else "another name"
        super().__init__(f"{name!r} already exists: it is a {by}", hint=hint)


class SpecConflict(TerminalError):
    """IF NOT EXISTS met an item of the same name and another definition. ``name`` is written as in SQL.

    :param remedy: the statement that would make them agree, where there is one.
    """

    def __init__(self, name: str, difference: str, *, remedy: str = "") -> None:
        self.name, self.difference, self.remedy = name, difference, remedy
        super().__init__(
            f"{name!r} exists with another definition: {difference}", hint=_run_sql(remedy or f"SHOW CREATE {name}")
        )


class HasDependents(TerminalError):
    """``name`` is written as in SQL."""

    def __init__(self, name: str, dependents: list[str]) -> None:
        self.name, self.dependents = name, dependents
        super().__init__(
            f"source {name!r} still feeds {', '.join(dependents)}", hint=_run_sql(f"DROP SOURCE {name} CASCADE")
        )


class NotResumable(TerminalError):
    """A table that was to be healed or filled anew is not in a state for that. ``table`` is written as in SQL.

    :param backfill_id: the backfill that already brings it up, if that is the reason.
    """

    def __init__(self, table: str, why: str, *, backfill_id: str | None = None) -> None:
        self.table, self.why, self.backfill_id = table, why, backfill_id
        super().__init__(f"table {table!r} cannot be resumed or filled again: {why}", hint="mzshare status")


class StalePlan(TransientError):
    """The facts of a plan have changed since it was made, so it was not executed. Nothing was done.

    :param what: what was planned for. :param changes: each as a clause.
    """

    def __init__(
        self, what: str, changes: Iterable[str], *, hint: str = "run the same statement again; it makes a new plan"
    ) -> None:
        self.what, self.changes = what, tuple(changes)
        super().__init__(f"the plan for {what} is out of date: {'; '.join(self.changes)}", hint=hint)


class CatalogMissing(TerminalError):
    def __init__(self, url: str) -> None:
        super().__init__(f"there is no mzshare catalog at {url}", hint="mzshare catalog upgrade")


class CatalogOutdated(TerminalError):
    def __init__(self, found: str, wanted: str) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(
            f"the catalog's schema is {found}, but this version of mzshare needs {wanted}",
            hint="mzshare catalog upgrade",
        )


class CatalogTooNew(TerminalError):
    def __init__(self, found: str, wanted: str) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(
            f"the catalog's schema {found} is newer than the newest that this version of mzshare knows ({wanted})",
            hint="pip install --upgrade airflow-provider-mzshare",
        )


class CatalogUnusable(TerminalError):
    """A URL that is none of ours, or a file that is no catalog. The message never shows a password."""


class CatalogUnreachable(TransientError):
    """The catalog's database does not answer, or stayed locked."""


# ── connections and upstreams ─────────────────────────────────────────────────────────────────────────────────────────


class UnknownConnection(TerminalError):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"connection {name!r} is not defined",
            hint=f"airflow connections add {name} … or export AIRFLOW_CONN_{name.upper()}='{{\"conn_type\": …}}'",
        )


class BadConnection(TerminalError):
    """A connection whose content we do not accept; the message names the key."""


class UnknownKind(TerminalError):
    """A source of a kind that no installed package has. :param known: the kinds that there are."""

    def __init__(self, kind: str, known: list[str]) -> None:
        self.kind, self.known = kind, known
        super().__init__(
            f"there is no connector {kind!r} here; there are: {', '.join(known)}",
            hint="install the package that registers it, wherever mzshare and its apps run",
        )


class KindNotLoaded(TerminalError):
    """A connector that is registered and cannot be loaded. :param target: ``module:attribute`` that it names."""

    def __init__(self, kind: str, target: str, reason: str) -> None:
        self.kind, self.target, self.reason = kind, target, reason
        super().__init__(
            f"connector {kind!r} ({target}) cannot be loaded: {reason}",
            hint="install or repair the package that has it",
        )


class UpstreamUnreachable(TransientError):
    pass


class NotAuthorized(TerminalError):
    """Credentials refused, or the right to read is missing."""


class ReferenceMissing(TerminalError):
    """The topic or table is not there upstream."""


class BadStart(TerminalError):
    """A START that the upstream cannot give."""


class UpstreamChanged(TerminalError):
    """The upstream is no longer what the log was read from; the source stalls, nothing is skipped.

    ``reason`` is machine-readable: ``topic_recreated``, ``history_gone``, ``slot_missing``; each kind has its own.
    """

    hint = "DROP SOURCE … CASCADE and create it again, once you know what was lost"

    def __init__(self, reason: str, message: str, *, hint: str = "") -> None:
        self.reason = reason
        super().__init__(message, hint=hint)


class SnapshotLost(TransientError):
    """A snapshot of an upstream cannot be read to its end any more; nothing of it counts, and another one is taken."""

    hint = "another snapshot is taken by itself; mzshare status shows its progress"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the snapshot of the tables upstream was lost: {problem}")


# ── the tick protocol ─────────────────────────────────────────────────────────────────────────────────────────────────


class Fenced(TerminalError):
    """The job may not write any more: another job holds the lease, or the source or backfill has ended. Stop."""


class LeaseTaken(TerminalError):
    """Another job holds the source's lease and is alive."""


class LogConflict(TransientError):
    """A tick that was to be minted or committed does not fit the log as it is now: read the log again."""


class CatalogBehind(TerminalError):
    """A collection holds a tick that the catalog does not know: the catalog has lost its newest ticks."""

    def __init__(self, source: str, collection: str, stored: int) -> None:
        self.source, self.collection, self.stored = source, collection, stored
        super().__init__(
            f"source {source}: collection {collection} holds tick time {stored}, which the catalog does not know",
            hint="mzshare catalog repair",
        )


class CommitUnclear(TransientError):
    """A Delta commit failed again and again, and it is not known whether another writer won."""


class GroupTooShort(TransientError):
    """A collection holds a later tick than the last tick of a group: plan a group that reaches it."""

    def __init__(self, collection: str, tick: int) -> None:
        self.collection, self.tick = collection, tick
        super().__init__(f"collection {collection} already holds tick {tick}: the group must go at least that far")


class PlanAgain(TransientError):
    """Another writer has committed to a collection since a group was planned: other ticks are due now."""

    def __init__(self, collection: str, planned: int | None, stored: int | None) -> None:
        self.collection, self.planned, self.stored = collection, planned, stored
        super().__init__(
            f"collection {collection} holds tick time {stored or 'none'} now, but held {planned or 'none'} when the "
            "group was planned"
        )


class NotReadable(TerminalError):
    """An as-of outside ``[since, upper)``, or a table without any committed tick."""


# ── collections ───────────────────────────────────────────────────────────────────────────────────────────────────────


class BadCollection(TerminalError):
    """The folder of a collection is missing, damaged, or holds another collection."""

    def __init__(self, collection: str, problem: str) -> None:
        self.collection, self.problem = collection, problem
        super().__init__(f"collection {collection}: {problem}", hint="mzshare doctor")


class UnknownHashVersion(TerminalError):
    """Rows were hashed by a version of the hash that came later than this program."""

    def __init__(self, version: int, known: Iterable[int]) -> None:
        self.version, self.known = version, tuple(known)
        listed = ", ".join(map(str, self.known))
        super().__init__(
            f"the rows have hashes of version {version}, but this mzshare knows only: {listed}",
            hint="upgrade mzshare here to the version that wrote the rows",
        )


class WarehouseUnreachable(TransientError):
    """The storage under a collection does not answer, or answers with an error."""

    def __init__(self, collection: str, problem: str) -> None:
        self.collection, self.problem = collection, problem
        super().__init__(f"collection {collection} cannot be read: {problem}", hint="mzshare doctor")


class FilesTooOld(TransientError):
    """Files that waited so long for their commit that maintenance may already have removed them."""

    def __init__(self, collection: str, hours: float) -> None:
        self.collection, self.hours = collection, hours
        super().__init__(f"collection {collection}: files written {hours:.1f} hours ago are too old to be committed")


# ── compute ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class MissingProgram(TerminalError):
    """Something the machine lacks, with how to get it."""


class JarProblem(TerminalError):
    """A jar is missing or is not the one pinned."""


class BadJobFile(TerminalError):
    """The file an app was to read its job from is missing, not private, or of another version."""


class LaunchFailed(TransientError):
    """An app could not be started at all."""


class ServerFailed(TerminalError):
    """A server of ours (an embedded Kafka) did not come up; the message carries its own last words."""


class JobFailed(TerminalError):
    """An app ended badly; the message carries its own last error."""


class WaitTimeout(TransientError):
    """What was waited for did not happen in time."""
