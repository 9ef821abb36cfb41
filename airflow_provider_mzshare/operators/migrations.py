"""The operator that moves old-style sources to tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from airflow_provider_mzshare.errors import JobFailed, TerminalError
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.upgrade.report import Report
    from airflow_provider_mzshare.control.upgrade.window import Window

_ACTIONS = ("migrate", "rollback", "finalize")
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


class MigrateSourceOperator(MzShareOperator):
    """Turn old-style sources into sources with tables, undo that, or end it for good.

    Only definitions change; data, history and running apps stay as they are. Each source is one transaction. A retry
    goes on where the task ended, and does nothing twice. Outside its window the task waits in the triggerer.

    :param source: one source, by its name or id. (templated)
    :param pattern: all whose name matches, with ``*``, ``?`` and ``[…]``. (templated)
    :param all_sources: all sources. Give exactly one of these three. (templated)
    :param action: ``migrate``, ``rollback`` or ``finalize``. (templated)
    :param apply: carry the plan out; default: only report it. (templated)
    :param batch_size: how many sources to migrate before the next look at the window. (templated)
    :param window_start: batches may start from this time of day on, in UTC, as ``22:00``; default: any. (templated)
    :param window_end: no batch may start from this time of day on. (templated)
    :param stop_on_first_failure: stop at the first source that fails, or go on with the others. (templated)
    """

    template_fields: Sequence[str] = (
        "source", "pattern", "all_sources", "action", "apply", "batch_size", "window_start", "window_end",
        "stop_on_first_failure", *MzShareOperator.template_fields,
    )  # fmt: skip
    operator_extra_links = (StatusLink(),)

    def __init__(
        self,
        *,
        source: str | None = None,
        pattern: str | None = None,
        all_sources: bool | str = False,
        action: str = "migrate",
        apply: bool | str = False,
        batch_size: int | str = 10,
        window_start: str | None = None,
        window_end: str | None = None,
        stop_on_first_failure: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source, self.pattern, self.all_sources = source, pattern, all_sources
        self.action, self.apply, self.batch_size = action, apply, batch_size
        self.window_start, self.window_end = window_start, window_end
        self.stop_on_first_failure = stop_on_first_failure

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns the report: each source with its objects, before and after, and what other tools' state must say."""
        from airflow_provider_mzshare.control.upgrade.window import Window

        window = Window.parse(self.window_start, self.window_end)
        report = self._run(window)
        for one in report.sources:
            self.log.info("%s (%s): %s %s", one.source, one.id, one.state, one.error)
        if report.failed:
            failed = [f"{one.source}: {one.error}" for one in report.sources if one.state == "failed"]
            raise JobFailed("; ".join(failed), hint="mzshare migrate")
        if report.pending:
            self._wait(window)
        return report.to_json()

    def execute_again(self, context: Context, event: Any = None) -> Any:
        """The window is open again."""
        return self.execute(context)

    def _run(self, window: Window) -> Report:
        from airflow_provider_mzshare.control.upgrade.choosing import Wanted
        from airflow_provider_mzshare.control.upgrade.executor import Run
        from airflow_provider_mzshare.control.upgrade.plan_sql import plan_text

        if self.action not in _ACTIONS:
            raise TerminalError(f"{self.action!r} is not an action", hint=", ".join(_ACTIONS))
        how = Run(
            action=self.action,  # type: ignore[arg-type]
            apply=_flag(self.apply, "apply"),
            batch_size=_count(self.batch_size),
            stop_on_first_failure=_flag(self.stop_on_first_failure, "stop_on_first_failure"),
            may_start=lambda: window.is_open(datetime.now(timezone.utc)),
            plans=lambda plan: self.log.info("%s", plan_text(plan)),
        )
        wanted = Wanted(self.source or None, self.pattern or None, _flag(self.all_sources, "all_sources"))
        return self.hook.migrate(wanted, how)

    def _wait(self, window: Window) -> None:
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        opens = window.opens(datetime.now(timezone.utc))
        self.log.info("the window is closed until %s", opens)
        self.defer(trigger=DateTimeTrigger(opens), method_name="execute_again")


def _flag(value: bool | str, name: str) -> bool:
    """A flag, also as the text that a template renders to."""
    if isinstance(value, bool):
        return value
    if (found := _WORDS.get(str(value).strip().lower())) is None:
        raise TerminalError(f"{name} cannot be {value!r}", hint="true or false")
    return found


def _count(value: int | str) -> int:
    try:
        return int(value)
    except ValueError:
        raise TerminalError(f"batch_size cannot be {value!r}", hint="a whole number, 1 or more") from None
