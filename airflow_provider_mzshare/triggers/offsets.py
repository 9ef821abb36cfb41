"""The wait of a deferred ``OffsetsConvergedSensor``, and of a ``ReadChangesOperator``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_mzshare.control.lifecycle.converged_wait import Answer, Question
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.events import ConvergedEvent
from airflow_provider_mzshare.triggers.catalogs import find_settings
from airflow_provider_mzshare.triggers.poller import wait_for


class OffsetsConvergedTrigger(BaseTrigger):
    """Fire once: when the table is live, or has all before a time, or when that cannot come by itself.

    Any number of these triggers on one catalog share one query an interval. Their state need not survive: a triggerer
    that takes over asks the same question. If a user kills the task, only the wait ends; the backfill goes on.

    Arguments are a wire format, because deferred tasks outlive upgrades: new ones get a default, and those of a newer
    version are left out.

    :param table: the table's name, ``[schema.]name``.
    :param max_lag: how many ticks it may be behind when its cutover is asked for.
    :param mzshare_conn_id: the connection that says where the catalog is.
    :param poll_interval: seconds between two looks; the smallest of all that wait on a catalog counts.
    :param table_id: the table that had the name when the wait began: another table with this name is not it.
    :param generation: the generation that was to become live when the wait began.
    :param upper: wait until all that is before this time, in milliseconds, is final; live or not.
    """

    def __init__(
        self,
        table: str,
        max_lag: int,
        mzshare_conn_id: str,
        poll_interval: float,
        table_id: str | None = None,
        generation: int | None = None,
        upper: int | None = None,
        **later: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.max_lag = max_lag
        self.mzshare_conn_id = mzshare_conn_id
        self.poll_interval = poll_interval
        self.table_id = table_id
        self.generation = generation
        self.upper = upper

    @classmethod
    def asking(cls, question: Question, mzshare_conn_id: str, poll_interval: float) -> OffsetsConvergedTrigger:
        return cls(
            question.table,
            question.max_lag,
            mzshare_conn_id,
            poll_interval,
            question.table_id,
            question.generation,
            question.upper,
        )

    def serialize(self) -> tuple[str, dict[str, Any]]:
        # A triggerer of the version before takes what the sensor sends.
        upper = {} if self.upper is None else {"upper": self.upper}
        return (
            "airflow_provider_mzshare.triggers.offsets.OffsetsConvergedTrigger",
            {
                "table": self.table,
                "max_lag": self.max_lag,
                "mzshare_conn_id": self.mzshare_conn_id,
                "poll_interval": self.poll_interval,
                "table_id": self.table_id,
                "generation": self.generation,
                **upper,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        table_id = ItemId(self.table_id) if self.table_id else None
        question = Question(self.table, self.max_lag, table_id, self.generation, self.upper)
        try:
            settings = await find_settings(self.mzshare_conn_id)
            answer = await wait_for(settings.catalog_url, question, self.poll_interval)
        except TerminalError as error:
            answer = Answer(error=error)
        yield TriggerEvent(to_event(question, answer).to_payload())


def to_event(question: Question, answer: Answer) -> ConvergedEvent:
    if answer.error is not None:
        return ConvergedEvent("failed", question.table, error=answer.error.message, hint=answer.error.hint)
    return ConvergedEvent("converged", question.table, result=answer.result)
