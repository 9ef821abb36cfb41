"""What can be wrong with a query on the catalog, as errors: each names the thing and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from airflow_provider_mzshare.control.views.view_errors import near_names
from airflow_provider_mzshare.errors import TerminalError

MAX_ROWS = 100_000


class NoSuchRelation(TerminalError):
    """``name`` is none of the catalog's relations, and no source."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, known = name, list(known)
        near = near_names(name.rpartition(".")[2], known)
        also = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(
            f"{name!r} is not a relation of the catalog{also}",
            hint=f"one of {', '.join(known)}, or a source for its progress",
        )


class NotInCatalog(TerminalError):
    """Its rows are in the warehouse. ``name`` is written as in SQL."""

    def __init__(self, kind: str, name: str) -> None:
        self.name = name
        article = "an" if kind[:1] in "aeiou" else "a"
        super().__init__(
            f"{name!r} is {article} {kind}: its rows are in the warehouse, and SELECT reads the catalog",
            hint=f"mzshare read {shlex.quote(name)}",
        )


class TooManyRows(TerminalError):
    def __init__(self) -> None:
        super().__init__(f"the query has more than {MAX_ROWS:,} rows", hint="add a WHERE or a LIMIT")


class TookTooLong(TerminalError):
    """:param limit: as ``setting`` of ALTER SYSTEM says it."""

    def __init__(self, limit: str, setting: str) -> None:
        self.limit, self.setting = limit, setting
        super().__init__(
            f"the query took more than {limit} and was stopped",
            hint=f"add a WHERE or a LIMIT, or ALTER SYSTEM SET {setting} to more",
        )
