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

    All read one snapshot of the catalog, and of each source one tick. A check is no place for templates: names that
    are only known at run time are given as ``tables`` and resolved, never pasted.

    :param checks: each a SELECT that answers with one value, as ``SELECT count(*) = 0 FROM new WHERE id IS NULL``.
        From a form: ``"{{ params.checks }}"``; what stands in the form is not rendered again. (templated)
    :param tables: plain names that the checks may use, as ``{"new": "orders__next", "old": "orders"}``. (templated)
    :param require_live: refuse to check tables that are not live; else the log tells of them.
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
