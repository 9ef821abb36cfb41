"""The operator for statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context

from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator


class MzShareSQLOperator(MzShareOperator):
    """Run statements: CREATE SOURCE, CREATE TABLE … FROM SOURCE, ALTER, DROP, SHOW, BEGIN … COMMIT.

    A template puts text into SQL as it is. For values from outside use the other operators: they quote.

    :param sql: the statements, or the name of a ``.sql`` file. (templated)
    :param dry_run_only: check everything, and keep nothing.
    """

    template_fields: Sequence[str] = ("sql", *MzShareOperator.template_fields)
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"sql": "sql"}  # noqa: RUF012
    operator_extra_links = (StatusLink(),)

    def __init__(self, *, sql: str, dry_run_only: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql, self.dry_run_only = sql, dry_run_only

    def perform(self, context: Context) -> list[dict[str, Any]]:
        """Returns for each statement its command, name, id, message and rows."""
        from airflow_provider_mzshare.cli.render import plain

        results = self.hook.run_sql(self.sql, dry_run=self.dry_run_only)
        for result in results:
            self.log.info(result.message or result.command)
        return [
            {
                "command": result.command,
                "name": result.name,
                "id": result.id,
                "message": result.message,
                "rows": None if result.rows is None else plain(result.rows),
            }
            for result in results
        ]
