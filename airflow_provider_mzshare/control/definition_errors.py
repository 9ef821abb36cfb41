"""Errors about definitions: names, schemas, columns, flags, dependents. Facts in, a sentence and the next step out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from airflow_provider_mzshare.errors import HasDependents, TerminalError, TransientError

_SHOWN = 20
"""So many names are listed one by one."""


def run_sql(statement: str) -> str:
    """A command to paste: names in SQL may hold quotes of either kind."""
    return f"mzshare sql {shlex.quote(statement)}"


def some(names: Sequence[str]) -> str:
    """A list that stays readable, whatever its length."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


class ChangedMeanwhile(TransientError):
    """What a statement was checked against is no longer so. Nothing was done."""

    def __init__(self, what: str, how: str = "changed by somebody else") -> None:
        super().__init__(f"{what} was {how} while this ran", hint="run the same statement again")


# ── schemas and names ─────────────────────────────────────────────────────────────────────────────────────────────────


class UnknownSchema(TerminalError):
    """``name`` is written as in SQL."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"schema {name!r} does not exist", hint=run_sql("SHOW SCHEMAS"))


class SchemaTaken(TerminalError):
    def __init__(self, name: str, *, hint: str = "another name, or CREATE SCHEMA IF NOT EXISTS") -> None:
        self.name = name
        super().__init__(f"schema {name!r} already exists", hint=hint)


class ReservedSchema(TerminalError):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"schema {name!r} belongs to mzshare: names that begin with mz_ or pg_ are reserved", hint="another schema"
        )


class SchemaNotEmpty(TerminalError):
    """:param held: what is in it, each as kind and name."""

    def __init__(self, name: str, held: Sequence[str]) -> None:
        self.name, self.held = name, list(held)
        super().__init__(f"schema {name!r} still holds {some(held)}", hint=run_sql(f"DROP SCHEMA {name} CASCADE"))


class NotPossible(TerminalError):
    """A statement that makes no sense for the object it names, with the reason."""


# ── dependents ────────────────────────────────────────────────────────────────────────────────────────────────────────


class StillUsed(HasDependents):
    """:param dependents: what would have to go too, each as kind and name. ``name`` is written as in SQL."""

    def __init__(self, kind: str, name: str, dependents: Sequence[str]) -> None:
        self.name, self.dependents = name, list(dependents)
        TerminalError.__init__(
            self,
            f"{kind} {name!r} is still used by {some(dependents)}",
            hint=run_sql(f"DROP {kind.upper()} {name} CASCADE"),
        )


class ReadOnly(TerminalError):
    """INSERT, UPDATE and DELETE have no object that takes them."""


# ── references and columns ────────────────────────────────────────────────────────────────────────────────────────────


class UnknownColumn(TerminalError):
    """:param where: what was looked into. :param columns: those there are."""

    def __init__(self, where: str, column: str, columns: Sequence[str]) -> None:
        self.column, self.columns = column, list(columns)
        super().__init__(f"{where} has no column {column!r}", hint=f"one of {some(columns)}")


class AmbiguousReference(TerminalError):
    """:param choices: references that it may mean, as they are written in SQL."""

    def __init__(self, message: str, choices: Sequence[str]) -> None:
        self.choices = list(choices)
        super().__init__(message, hint=f"(REFERENCE r), where r is one of {some(choices)}")


class BadExport(TerminalError):
    """A table that its upstream cannot give the way it was asked for."""


# ── flags ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class FlagOff(TerminalError):
    def __init__(self, flag: str, what: str) -> None:
        self.flag = flag
        super().__init__(f"{what} is switched off: {flag} is false", hint=run_sql(f"ALTER SYSTEM SET {flag} = true"))


class UnknownSetting(TerminalError):
    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        super().__init__(f"there is no system setting {name!r}", hint=f"one of {', '.join(known)}")


class BadValue(TerminalError):
    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name, self.value = name, value
        super().__init__(f"{name} takes {wanted}, not {value!r}", hint=run_sql(f"ALTER SYSTEM RESET {name}"))


class NotMigrated(TerminalError):
    """:param left: old-style objects, each as kind and name."""

    def __init__(self, flag: str, left: Sequence[str]) -> None:
        self.left = list(left)
        super().__init__(
            f"{flag} cannot be true while these are not migrated: {some(left)}", hint="mzshare migrate --all"
        )


# ── migrations ────────────────────────────────────────────────────────────────────────────────────────────────────────


class CannotRollBack(TerminalError):
    """``source`` is the name it had before it was migrated, written as in SQL."""

    def __init__(self, source: str, why: str, *, hint: str = "solve that, or keep the migration") -> None:
        self.source, self.why = source, why
        super().__init__(f"the migration of source {source!r} cannot be rolled back: {why}", hint=hint)


class NothingToMigrate(TerminalError):
    """What was asked for names no source that could be migrated, rolled back or finalized."""
