"""What is wrong with an old-style statement: facts in, one sentence and the next step out."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mzshare.control.catalog.objects.flags import FORCE_TABLES
from airflow_provider_mzshare.control.definition_errors import run_sql
from airflow_provider_mzshare.errors import TerminalError


class OldSyntax(TerminalError):
    """Old-style syntax in a catalog that is to have none.

    :param instead: the statements to write in its place.
    """

    def __init__(self, what: str, instead: Sequence[str]) -> None:
        self.instead = list(instead)
        allow = run_sql(f"ALTER SYSTEM SET {FORCE_TABLES} = false")
        super().__init__(
            f"{what} is old syntax, which is not allowed while {FORCE_TABLES} is true",
            hint=f"{run_sql('; '.join(instead))}, or {allow}",
        )


class OutputNameTaken(TerminalError):
    """A name that an old-style statement would give is not free. ``name`` is written as in SQL."""

    def __init__(self, name: str, by: str, wanted: str, *, hint: str) -> None:
        self.name, self.by, self.wanted = name, by, wanted
        super().__init__(f"{name!r} cannot name the {wanted}: it is the name of a {by}", hint=hint)


class ReferenceTaken(TerminalError):
    """One subsource per reference; only tables may repeat it. All names are written as in SQL."""

    def __init__(self, reference: str, source: str, subsource: str) -> None:
        self.reference, self.subsource = reference, subsource
        super().__init__(
            f"reference {reference} of source {source} has a subsource already, {subsource}: only one is allowed",
            hint=run_sql(f"CREATE TABLE … FROM SOURCE {source} (REFERENCE {reference})"),
        )
