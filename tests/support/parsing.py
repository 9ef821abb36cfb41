"""Scripts of one statement: what it is, or why it is refused."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.sql.script import Statement, parse_script
from airflow_provider_mzshare.errors import StatementError


def one(sql: str) -> Statement:
    (transaction,) = parse_script(sql)
    (statement,) = transaction.statements
    return statement


def refusal(sql: str) -> StatementError:
    with pytest.raises(StatementError) as caught:
        parse_script(sql)
    return caught.value
