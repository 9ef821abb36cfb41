"""The hook for versioning: plans, swaps that can be repeated, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_mzshare.control.lifecycle.author_checks import CheckResult, run_checks
from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables, ignore
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.control.statements.blue_green import (
    Swapped,
    SwapPlan,
    drop_unless_live,
    plan_rollback,
    plan_swap,
    swap_once,
)
from airflow_provider_mzshare.hooks.mzshare import MzShareHook


class VersioningHook(MzShareHook):
    """Names are ``[schema.]name``, as in SQL."""

    def plan_swap(self, table: str, other: str | None = None) -> SwapPlan:
        return plan_swap(self.catalog, table, other)

    def plan_rollback(self, table: str, kept: str | None = None) -> SwapPlan:
        return plan_rollback(self.catalog, table, kept)

    def swap(
        self,
        table: str,
        other: str,
        *,
        new_id: str,
        old_id: str | None = None,
        keep_as: str | None = None,
        force: bool = False,
    ) -> Swapped:
        return swap_once(self.catalog, table, other, new_id=new_id, old_id=old_id, keep_as=keep_as, force=force)

    def drop_unless_live(self, table: str, other: str, *, last_id: str, keep: bool = False) -> str:
        return drop_unless_live(self.catalog, table, other, last_id=last_id, keep=keep)

    def check(
        self, checks: Sequence[str], tables: Mapping[str, str], *, not_live: NotLiveTables = ignore
    ) -> list[CheckResult]:
        stand_ins = {plain: typed_name(name) for plain, name in tables.items()}
        settings = self.settings
        return run_checks(
            self.catalog, settings.warehouse, checks, stand_ins=stand_ins, jars=settings.jars, not_live=not_live
        )
