"""Errors of ours as a task shows them: what cannot heal is one clear line and is not retried."""

from __future__ import annotations

import logging
import traceback

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException
from structlog.tracebacks import extract

from airflow_provider_mzshare.errors import TerminalError, TransientError
from airflow_provider_mzshare.hooks.failures import no_retry_when_terminal
from airflow_provider_mzshare.operators.base import MzShareOperator
from airflow_provider_mzshare.operators.maintenance import MaintainOperator


def test_a_terminal_error_is_told_once_and_where_it_came_from_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="airflow_provider_mzshare.hooks.failures")
    with pytest.raises(AirflowFailException) as failed, no_retry_when_terminal():
        raise TerminalError("the topic is gone", hint="mzshare status")
    assert str(failed.value) == "the topic is gone. Try: mzshare status"
    shown = "".join(traceback.format_exception(failed.value))
    assert shown.count("the topic is gone. Try") == 1
    assert "TerminalError: " not in shown
    as_airflow_logs_it = extract(type(failed.value), failed.value, failed.value.__traceback__)
    assert [stack.exc_type for stack in as_airflow_logs_it.stacks] == ["AirflowFailException"]
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert record.exc_info is not None
    assert record.exc_info[0] is TerminalError


def test_what_may_heal_by_itself_is_raised_as_it_is() -> None:
    with pytest.raises(TransientError, match="away"), no_retry_when_terminal():
        raise TransientError("the catalog is away")


def test_an_operator_that_does_nothing_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="perform"):
        MzShareOperator(task_id="t")  # type: ignore[abstract]

    class Half(MzShareOperator):
        pass

    with pytest.raises(TypeError, match="perform"):
        Half(task_id="t")  # type: ignore[abstract]

    class Whole(MzShareOperator):
        def perform(self, context: Context) -> str:
            return "done"

    assert Whole(task_id="t").perform(Context()) == "done"
    assert MaintainOperator(task_id="t").task_id == "t"
