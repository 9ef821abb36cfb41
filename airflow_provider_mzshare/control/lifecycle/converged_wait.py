"""Looks at tables that are to become live, or to get far enough, for all waits: tasks, triggers, commands and Python.

One look reads all tables of all waits in one query. ``arm`` allows the cutover of those that are close enough, if it is
waited for.
What a look means is decided in ``live_decision``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import lru_cache

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import arm_table, arming
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.queries.convergence import Key, convergences
from airflow_provider_mzshare.control.lifecycle.live_decision import Answer, Question, answer
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import TerminalError, UnknownItem

__all__ = ["Answer", "Question", "arm", "ask", "look"]


def ask(catalog: Catalog, question: Question) -> Answer:
    """Look at one table, and let it be cut over if it is close enough."""
    answers = look(catalog, [question])
    arm(catalog, answers)
    return answers[question]


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
    return answers | {question: answer(question, found.get(key)) for question, key in keys.items()}


@lru_cache(maxsize=4096)
def _name(text: str) -> Name:
    name = typed_name(text)
    return name.schema, name.name


def arm(catalog: Catalog, answers: Mapping[Question, Answer]) -> None:
    """Allow the cutover of tables that are close enough: one short transaction for each source, however many tables.

    The rule decides again behind the source's lock, because several may ask: sensors, commands, the reconciler.
    """
    for (source_id, max_lag), tables in _close_enough(answers).items():
        # A table that was dropped since the look: the next look says so.
        with suppress(UnknownItem), catalog.write() as session:
            if len(tables) == 1:
                arm_table(session, *tables, max_lag=max_lag)
            else:
                arming(session, source_id, max_lag=max_lag)


def _close_enough(answers: Mapping[Question, Answer]) -> Mapping[tuple[ItemId, int], set[ItemId]]:
    groups: dict[tuple[ItemId, int], set[ItemId]] = defaultdict(set)
    for question, told in answers.items():
        found = told.convergence
        if found is None or told.error is not None or question.upper is not None:
            continue
        if found.can_arm(question.max_lag):
            groups[found.source_id, question.max_lag].add(found.table_id)
    return groups
