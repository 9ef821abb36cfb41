"""Errors of ours as Airflow should take them: what cannot go away by itself is not retried. Decided here alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_mzshare.errors import LaunchFailed, TerminalError

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.supervision.reconciler import Outcome


log = logging.getLogger(__name__)


@contextmanager
def no_retry_when_terminal() -> Iterator[None]:
    """The task's log and its failure say what to do next, once: where the error came from is told at debug."""
    try:
        yield
    except TerminalError as error:
        log.debug("%s", error.line, exc_info=True)
        raise AirflowFailException(error.line) from None


def raise_if_failed(outcomes: list[Outcome]) -> list[Outcome]:
    """What could not be done may work at the next attempt."""
    if bad := [outcome for outcome in outcomes if not outcome.ok]:
        raise LaunchFailed(f"{bad[0].action} {bad[0].subject}: {bad[0].detail}", hint=bad[0].hint)
    return outcomes
