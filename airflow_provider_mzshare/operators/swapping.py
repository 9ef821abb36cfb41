"""Operators that replace one table by another: plan it, swap once, drop the table that lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator

if TYPE_CHECKING:
    from airflow_provider_mzshare.hooks.versioning import VersioningHook


class _VersioningOperator(MzShareOperator):
    operator_extra_links = (StatusLink(),)

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table

    @cached_property
    def hook(self) -> VersioningHook:
        from airflow_provider_mzshare.hooks.versioning import VersioningHook

        return VersioningHook(self.mzshare_conn_id)


class PlanSwapOperator(_VersioningOperator):
    """Plan how to replace a table: all names, the id of the present table, and the views that read it.

    :param table: the name that readers use, ``[schema.]name``. (templated)
    :param other: the table that gets the name; default: the same name with ``__next`` at its end. (templated)
    :param rollback: plan the way back: a table that was replaced gets its name again. ``other`` names that table, if
        several are kept.
    """

    template_fields: Sequence[str] = ("table", "other", *MzShareOperator.template_fields)

    def __init__(self, *, other: str | None = None, rollback: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.other, self.rollback = other, rollback

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns ``table``, ``old_id``, ``other``, ``keep_as``, ``last_id``, ``views``; for a rollback ``new_id``."""
        if not self.rollback:
            return self.hook.plan_swap(self.table, self.other or None).to_json()
        from airflow_provider_mzshare.control.statements.blue_green import kept_for

        plan = self.hook.plan_rollback(self.table, self.other or None)
        new_id = self.hook.table(plan.other).id
        return {**plan.to_json(), "new_id": new_id, "keep_as": kept_for(plan.keep_as, new_id)}


class SwapTablesOperator(_VersioningOperator):
    """Give a table the name of another, in one transaction: readers of the name see one or the other table as a whole.

    The table that gets the name must be live and caught up with its source. Without ``keep_as`` the replaced table
    gets the other name, so it must be live and caught up too. A retry does not swap back: ``new_id`` shows that the
    swap was done.

    :param table: the name that readers use, ``[schema.]name``. (templated)
    :param other: the table that gets this name. (templated)
    :param new_id: that table's id, as ``u7``. (templated)
    :param old_id: the planned id of the table to replace; another table of this name is not replaced. (templated)
    :param keep_as: the new name of the replaced table; default: the name of the other table. (templated)
    :param keep_days: how long to keep it. The operator only returns this, as ``keep_until``. (templated)
    :param force: swap the tables, whatever state they are in. (templated)
    """

    template_fields: Sequence[str] = (
        "table", "other", "new_id", "old_id", "keep_as", "keep_days", "force", *MzShareOperator.template_fields,
    )  # fmt: skip

    def __init__(
        self,
        *,
        other: str,
        new_id: str,
        old_id: str | None = None,
        keep_as: str | None = None,
        keep_days: float | str = 0,
        force: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.other, self.new_id, self.keep_as, self.keep_days = other, new_id, keep_as, keep_days
        self.old_id, self.force = old_id, force

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns ``table``, ``new_id``, ``old_id``, ``keep_as``, ``changed`` and ``keep_until``."""
        days = _days(self.keep_days)
        swapped = self.hook.swap(
            self.table,
            self.other,
            new_id=self.new_id,
            old_id=self.old_id or None,
            keep_as=self.keep_as or None,
            force=_yes(self.force),
        )
        self.log.info("%s is %s%s", swapped.table, swapped.new_id, "" if swapped.changed else ": it was already")
        self.publish(context, [swapped.table])
        until = datetime.now(timezone.utc) + timedelta(days=days)
        return {**swapped.to_json(), "keep_until": until.isoformat()}


class DropUnlessLiveOperator(_VersioningOperator):
    """Drop the table that should get a name, unless it has got it. For a teardown: the live table is not touched.

    :param table: the name that readers use. (templated)
    :param other: the table that should get this name. (templated)
    :param last_id: the newest id when the swap was planned: only a table made since then is dropped. (templated)
    :param keep: do not drop it, so that somebody can look for the cause. (templated)
    """

    template_fields: Sequence[str] = ("table", "other", "last_id", "keep", *MzShareOperator.template_fields)

    def __init__(self, *, other: str, last_id: str, keep: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.other, self.last_id, self.keep = other, last_id, keep

    def perform(self, context: Context) -> str:
        done = self.hook.drop_unless_live(self.table, self.other, last_id=self.last_id, keep=_yes(self.keep))
        self.log.info(done)
        return done


def _yes(value: bool | str) -> bool:
    """A template renders to text."""
    return str(value).lower() == "true"


def _days(value: float | str) -> float:
    """A template renders to text."""
    try:
        days = float(value)
    except ValueError:
        days = -1.0
    if not 0 <= days <= 36_500:
        raise TerminalError(f"keep_days must be a number of days, 0 or more, not {value!r}")
    return days
