"""What a handler is given, and what it returns for the plan. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.facts import Facts
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival
from airflow_provider_mzshare.core.ticklog.state import SourceState


@dataclass(frozen=True)
class Decision:
    """How one table arrives, and the state that this was decided from."""

    source: items.SourceItem
    state: SourceState
    arrival: Arrival
    sizes: Mapping[str, float]
    kept_seconds: float | None = None
    """Of a keyed table whose upstream compacts: for how long that keeps deletes."""


@dataclass(frozen=True)
class Effect:
    """One thing that a statement does, for EXPLAIN: ``drop table``, ``public.t``, ``u5``."""

    action: str
    object: str
    detail: str = ""


@dataclass
class Context:
    """What one statement does. A handler appends to the lists. It asks no upstream and commits nothing."""

    dry_run: bool
    decisions: list[Decision] = field(default_factory=list)
    """One for each table that is created or resumed. The transaction's plan is made from them."""
    effects: list[Effect] = field(default_factory=list)
    """All actions in order. If a statement has one action only, its result may stand for it."""

    def does(self, action: str, what: str, detail: str = "") -> None:
        self.effects.append(Effect(action, what, detail))


RunHandler = Callable[[Session, Sequence[Checked[Any]], Sequence[Context]], Sequence[Result]]
"""A handler for several statements at once, with a result for each."""
Handler = Callable[[Session, Checked[Any], Context], Result]
"""``checked.statement`` is the statement. The session is the caller's transaction: all of it or nothing is kept."""


class StatementPlan(Protocol):
    """What a statement will do, as a frozen value, with the facts that it was decided from."""

    @property
    def statement(self) -> Any: ...


@dataclass(frozen=True)
class Planner:
    """A statement in two halves.

    :param plan: decides everything, and writes nothing.
    :param execute: writes what the plan says, and decides nothing. Raises StalePlan if the plan's facts have changed.
    """

    plan: Callable[[Facts, Checked[Any]], StatementPlan]
    execute: Callable[[Facts, Any, Context], Result]

    def at_once(self, session: Session, checked: Checked[Any], context: Context) -> Result:
        """Plan and execute in one transaction with the same facts: then no plan can be stale. This is a ``Handler``."""
        facts = Facts(session)
        return self.execute(facts, self.plan(facts, checked), context)
