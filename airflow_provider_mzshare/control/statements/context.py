"""What a statement is carried out with, and what it leaves for the plan. Decides nothing."""

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


class StatementPlan(Protocol):
    """What a statement will do, as a frozen value, with what that rests on."""

    @property
    def statement(self) -> Any: ...


@dataclass(frozen=True)
class Planner:
    """A statement in two halves.

    :param plan: decides everything, and writes nothing.
    :param execute: writes what the plan says and decides nothing. StalePlan where what it rests on has changed.
    """

    plan: Callable[[Facts, Checked[Any]], StatementPlan]
    execute: Callable[[Facts, Any, Context], Result]

    def at_once(self, session: Session, checked: Checked[Any], context: Context) -> Result:
        """Both in one transaction and upon the same facts, so that the plan cannot be stale: a ``Handler``."""
        facts = Facts(session)
        return self.execute(facts, self.plan(facts, checked), context)
