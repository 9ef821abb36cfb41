"""Waits for tables to become live, look by look: one question that sensors, triggers and commands share.

A look reads all tables that are waited for in one query, arms those that are close enough, and tells which are done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table, arming
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.queries.convergence import Convergence, Key, convergences
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import JobFailed, TerminalError, UnknownItem


@dataclass(frozen=True)
class Question:
    """Is this table live?

    :param table: its name as a user types it.
    :param max_lag: how many ticks it may be behind when its cutover is asked for.
    :param table_id: the table that bore the name when the wait began: another one of that name is not it.
    :param generation: what was to become live when the wait began; it may be given up meanwhile.
    """

    table: str
    max_lag: int = 1
    table_id: ItemId | None = None
    generation: int | None = None


@dataclass(frozen=True)
class Answer:
    """Not yet, unless one of the two is set.

    :param convergence: None where there is no such table.
    :param result: the proof of the cutover, for one who is told that the table is live.
    """

    convergence: Convergence | None = None
    result: Mapping[str, Any] | None = None
    error: TerminalError | None = None

    @property
    def ends(self) -> bool:
        return self.result is not None or self.error is not None


def look(catalog: Catalog, questions: Collection[Question]) -> Mapping[Question, Answer]:
    """One query, whatever the number of tables; nothing is changed."""
    answers: dict[Question, Answer] = {}
    keys: dict[Question, Key] = {}
    for question in questions:
        try:
            keys[question] = question.table_id or _name(question.table)
        except TerminalError as error:
            answers[question] = Answer(error=error)
    with catalog.read() as session:
        found = convergences(session, set(keys.values()))
    return answers | {question: _answer(question, found.get(key)) for question, key in keys.items()}


@lru_cache(maxsize=4096)
def _name(text: str) -> Name:
    name = typed_name(text)
    return name.schema, name.name


def _answer(question: Question, found: Convergence | None) -> Answer:
    if found is None:
        return Answer(error=UnknownItem("table", question.table))
    if found.error is not None:
        return Answer(found, error=JobFailed(found.error, hint=_hint(found)))
    if not found.converged:
        return Answer(found)
    if question.generation is not None and found.generation < question.generation:
        retired = f"the new generation of table {found.table} was given up before it was live"
        return Answer(found, error=JobFailed(retired, hint=_hint(found)))
    return Answer(found, result=_proof(found))


def _proof(found: Convergence) -> Mapping[str, Any]:
    """A table that became live without a backfill has nothing to prove."""
    return found.certificate.to_json() if found.certificate else {"table": found.table, "status": found.status}


def _hint(found: Convergence) -> str:
    if found.status == "dropped":
        return "mzshare status"
    return hints.resume(found.table) if found.is_stalled else hints.command("status", found.table)


def arm(catalog: Catalog, answers: Mapping[Question, Answer]) -> None:
    """Let those be cut over that are close enough: in one short transaction for each source, however many they are."""
    for (source_id, max_lag), tables in _close_enough(answers).items():
        # One that was dropped since the look says so at the next.
        with suppress(UnknownItem), catalog.write() as session:
            if len(tables) == 1:
                arm_table(session, *tables, max_lag=max_lag)
            else:
                arming(session, source_id, max_lag=max_lag)


def _close_enough(answers: Mapping[Question, Answer]) -> Mapping[tuple[ItemId, int], set[ItemId]]:
    groups: dict[tuple[ItemId, int], set[ItemId]] = defaultdict(set)
    for question, answer in answers.items():
        found = answer.convergence
        if found is not None and answer.error is None and found.can_arm(question.max_lag):
            groups[found.source_id, question.max_lag].add(found.table_id)
    return groups
