"""Executes one table alone, to find out whether a failure is the table's own fault or has a shared cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Outcome
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.writing.executor import MemberFailed, TickExecutor
from airflow_provider_mzshare.storage.writing.machine import short_reason

if TYPE_CHECKING:
    from airflow_provider_mzshare.storage.writing.passes import Source


def execute_one(
    executor: TickExecutor,
    group: TickGroup,
    member: Member,
    read: Callable[[], Source | None],
    diagnose: Callable[[Exception], MzShareError],
) -> Outcome:
    """Raises MemberFailed when it is the table's own fault. Any other error is not, and the ticks wait."""
    table_id: ItemId = member.table_id

    def once() -> Outcome:
        return executor.execute(group, [member], read).outcomes[table_id]

    try:
        return once()
    except MemberFailed:
        executor.machine.check_warehouse()
        return once()
    except MzShareError:
        raise
    except Exception as error:  # noqa: BLE001  looked into at once
        diagnose(error)
        executor.machine.check_pass(read())
    try:
        return once()
    except MzShareError:
        raise
    except Exception as error:
        raise MemberFailed({table_id: short_reason(error)}) from error
