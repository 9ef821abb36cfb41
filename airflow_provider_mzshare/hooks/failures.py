"""Our errors as Airflow should handle them: one that cannot go away by itself is not retried. Only decided here."""

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
    """The task's log and failure say the next step once. The traceback is logged at debug level."""
    try:
        yield
    except TerminalError as error:
        log.debug("%s", error.line, exc_info=True)
        raise AirflowFailException(error.line) from None


def raise_if_failed(outcomes: list[Outcome]) -> list[Outcome]:
    """Raise an error that is retried: what failed may work at the next attempt."""
    if bad := [outcome for outcome in outcomes if not outcome.ok]:
        raise LaunchFailed(f"{bad[0].action} {bad[0].subject}: {bad[0].detail}", hint=bad[0].hint)
    return outcomes
