"""The operator that keeps tables tidy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import Context

from airflow_provider_mzshare.errors import JobFailed
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator


class MaintainOperator(MzShareOperator):
    """Move ``since`` as the tables' retention says, remove what it passed an hour ago, and ask the apps to compact.

    If this fails for a table, the task does all other tables, and then fails.

    :param source: only the tables of this source; default: all. (templated)
    """

    template_fields: Sequence[str] = ("source", *MzShareOperator.template_fields)
    operator_extra_links = (StatusLink(),)

    def __init__(self, *, source: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source

    def perform(self, context: Context) -> list[dict[str, Any]]:
        """Returns for each table its ``since``, and the files and bytes that went."""
        done = self.hook.maintain(self.source or None)
        for one in done:
            self.log.info(
                "%s: %s files and %s log entries removed, %s bytes", one.table, one.data_files, one.log_files, one.bytes
            )
            for hold in one.dropped_holds:
                self.log.warning("%s: dropped the read hold %s", one.table, hold)
        if troubled := [one for one in done if one.trouble]:
            raise JobFailed("; ".join(f"{one.table}: {one.trouble}" for one in troubled), hint="mzshare maintain")
        return [asdict(one) for one in done]
