"""Waits for a table that a backfill brings up to its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_mzshare.control.lifecycle.converged_wait import Answer, Question, ask
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.events import ConvergedEvent
from airflow_provider_mzshare.hooks.base import CatalogHook
from airflow_provider_mzshare.hooks.failures import no_retry_when_terminal
from airflow_provider_mzshare.triggers.offsets import OffsetsConvergedTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class OffsetsConvergedSensor(BaseSensorOperator):
    """Wait until a table has all its source has: ask for the cutover when it is close, and await it.

    Only committed positions in the catalog are compared. The sensor returns the certificate of the cutover as a
    dictionary; for a live table that never needed a backfill, its name and status. It fails at once, and without
    retries, when the table cannot become live by itself, with the message of the app that failed. If the catalog does
    not answer, the sensor asks again until the timeout. Any number of sensors may wait for one table.

    A killed task has nothing to undo: only the wait ends, and the backfill goes on. To end the backfill too, use
    ``RetireBackfillOperator``.

    :param table: the table's name, ``[schema.]name``. (templated)
    :param max_lag: how many ticks the table may be behind when its cutover is asked for.
    :param mzshare_conn_id: the connection that says where the catalog is. (templated)
    :param deferrable: wait in the triggerer, where all sensors on a catalog share one query. Else on the worker, in
        the sensor's ``mode``. With ``mode="reschedule"`` each look is a process of its own that cannot know what was
        awaited before: a table of the same name, or the old generation after the new one was given up, is taken for it.
    :param poke_interval: seconds between two looks, by default those of ``[mzshare] poll_interval``.
    """

    template_fields: Sequence[str] = ("table", "mzshare_conn_id")

    def __init__(
        self,
        *,
        table: str,
        max_lag: int = 1,
        mzshare_conn_id: str = CatalogHook.default_conn_name,
        deferrable: bool = True,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        if poke_interval is None:
            poke_interval = conf.getfloat("mzshare", "poll_interval", fallback=1.0)
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.table = table
        self.max_lag = max_lag
        self.mzshare_conn_id = mzshare_conn_id
        self.deferrable = deferrable
        self._asked: Question | None = None

    @cached_property
    def hook(self) -> CatalogHook:
        return CatalogHook(self.mzshare_conn_id)

    def execute(self, context: Context) -> Any:
        try:
            if not self.deferrable:
                return super().execute(context)
            answer = self._first_look()
        finally:
            self.hook.close()
        return dict(answer.result) if answer.result is not None else self._defer(self._question)

    def _defer(self, question: Question) -> NoReturn:
        self.defer(
            trigger=OffsetsConvergedTrigger.asking(question, self.mzshare_conn_id, self.poke_interval),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def _first_look(self) -> Answer:
        """The first look, before the sensor's own loop: failures are treated as the loop would."""
        try:
            return self._look()
        except AirflowFailException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(error)) from error
            raise

    def poke(self, context: Context) -> PokeReturnValue:
        answer = self._look()
        return PokeReturnValue(answer.result is not None, xcom_value=dict(answer.result or {}))

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """The end of the wait in the triggerer."""
        with no_retry_when_terminal():
            return ConvergedEvent.from_payload(event).result_or_raise()

    @property
    def _question(self) -> Question:
        return self._asked or Question(self.table, self.max_lag)

    def _look(self) -> Answer:
        with no_retry_when_terminal():
            try:
                answer = ask(self.hook.catalog, self._question)
            except TransientError as error:
                self.log.warning("%s", error.line)
                return Answer()
            if answer.error is not None:
                raise answer.error
        if found := answer.convergence:
            self.log.info("%s", found.progress)
            self._asked = self._question.about(found)
        return answer
