"""What a statement is carried out with, and what it leaves for the plan. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.table_plans import Arrival
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ticklog.state import SourceState


@dataclass(frozen=True)
class Decision:
    """How one table comes in, with what it was decided upon."""

    source: items.SourceItem
    state: SourceState
    arrival: Arrival
    sizes: Mapping[str, float]


@dataclass(frozen=True)
class Effect:
    """One thing that a statement does, for EXPLAIN: ``drop table``, ``public.t``, ``u5``."""

    action: str
    object: str
    detail: str = ""


@dataclass
class Context:
    """Of one statement. A handler appends to the lists; it asks no upstream and commits nothing."""

    dry_run: bool
    decisions: list[Decision] = field(default_factory=list)
    """Of tables that are made or healed: the plan of the transaction is made of these."""
    effects: list[Effect] = field(default_factory=list)
    """All that is done, in order; a statement that does one thing may leave it to its result."""

    def does(self, action: str, what: str, detail: str = "") -> None:
        self.effects.append(Effect(action, what, detail))


RunHandler = Callable[[Session, Sequence[Checked[Any]], Sequence[Context]], Sequence[Result]]
"""The same for several statements at once, with a result for each."""
Handler = Callable[[Session, Checked[Any], Context], Result]
"""``checked.statement`` is the statement. The session is the caller's transaction: all of it or nothing is kept."""
