"""The operator for checks: SELECTs that must come out true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.operators.base import MzShareOperator, as_list

if TYPE_CHECKING:
    from airflow_provider_mzshare.hooks.versioning import VersioningHook


class CheckSQLOperator(MzShareOperator):
    """Run checks on tables and views, through Spark on the worker's machine; fail unless all of them are true.

    All checks read one snapshot of the catalog, and one tick of each source. Do not use templates in a check: give
    names that are only known at run time as ``tables``. They are resolved, and never pasted into the SQL.

    :param checks: SELECTs that each return one value, such as ``SELECT count(*) = 0 FROM new WHERE id IS NULL``.
        From a form: ``"{{ params.checks }}"``; the text of the form is not rendered again. (templated)
    :param tables: plain names that the checks may use: ``{"new": "orders__next", "old": "orders"}``. (templated)
    :param require_live: fail if a table is not live; otherwise the log says so.
    """

    template_fields: Sequence[str] = ("checks", "tables", *MzShareOperator.template_fields)
    template_fields_renderers = {"checks": "sql", "tables": "py"}  # noqa: RUF012

    def __init__(
        self,
        *,
        checks: str | Sequence[str],
        tables: Mapping[str, str] | None = None,
        require_live: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.checks, self.tables, self.require_live = checks, tables, require_live

    @cached_property
    def hook(self) -> VersioningHook:
        from airflow_provider_mzshare.hooks.versioning import VersioningHook

        return VersioningHook(self.mzshare_conn_id)

    def perform(self, context: Context) -> list[dict[str, Any]]:
        """Returns for each check the ``check``, ``passed``, what was ``found``, and the ``ticks`` that were read."""
        asked = [one for one in as_list(self.checks) if one.strip()]
        results = self.hook.check(asked, self.tables or {}, not_live=self.not_live(self.require_live))
        for result in results:
            self.log.info("%s: %s", "passed" if result.passed else f"failed ({result.found})", result.check)
        if failed := [result for result in results if not result.passed]:
            told = "; ".join(f"{result.check} gave {result.found}" for result in failed)
            raise TerminalError(f"{len(failed)} of {len(results)} checks failed: {told}")
        return [result.to_json() for result in results]
