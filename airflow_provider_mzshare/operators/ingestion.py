"""Operators about ingestion apps. An app has no end: it is started and stopped, and no task lives as long as it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import Context

from airflow_provider_mzshare.hooks.base import GRACE_SECONDS, START_SECONDS
from airflow_provider_mzshare.hooks.failures import raise_if_failed
from airflow_provider_mzshare.links import JobLogLink, SparkUILink, StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator


class _SourceOperator(MzShareOperator):
    template_fields: Sequence[str] = ("source", *MzShareOperator.template_fields)
    operator_extra_links = (StatusLink(), JobLogLink(), SparkUILink())

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source


class StartIngestionOperator(_SourceOperator):
    """Keep a source's app running from now on. Done when the app holds the source and has committed a tick.

    An app that runs already goes on unchanged. A killed task undoes nothing: other tables may need the app.

    :param source: the source's name. (templated)
    :param start_timeout: how many seconds its first tick may take.
    """

    def __init__(self, *, start_timeout: float = START_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_timeout = start_timeout

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns the job, and the tick it has committed."""
        started = self.hook.start(self.source, timeout=self.start_timeout, poll=self.poll_interval)
        self.note_job(started.job)
        self.publish(context, self.hook.live_tables(self.source))
        return asdict(started)


class StopIngestionOperator(_SourceOperator):
    """Let a source's app end after its current tick, and keep it ended. Its backfills end with it.

    :param source: the source's name. (templated)
    :param grace: how many seconds the tick may take; after that the app is forced to end.
    """

    def __init__(self, *, grace: float = GRACE_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.grace = grace

    def perform(self, context: Context) -> list[dict[str, Any]]:
        return [asdict(outcome) for outcome in self.hook.stop(self.source, grace=self.grace)]


class ReconcileOperator(MzShareOperator):
    """Start apps that should run, stop those that should not, let tables converge, tidy up. If an action fails, the
    task does all the others, and then fails.
    """

    operator_extra_links = (StatusLink(),)

    def perform(self, context: Context) -> list[dict[str, Any]]:
        outcomes = self.hook.reconcile()
        for outcome in outcomes:
            self.log.info("%s %s: %s", outcome.action, outcome.subject, outcome.detail)
        return [asdict(outcome) for outcome in raise_if_failed(outcomes)]
