"""What all operators share: the hook, errors that are not retried if that is useless, and events of assets."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias, BaseOperator, Context, conf

from airflow_provider_mzshare.assets.mzshare import full_name, table_asset
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.hooks.base import DEFAULT_CONN_ID
from airflow_provider_mzshare.hooks.failures import no_retry_when_terminal

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.catalog.queries.standings import Standing
    from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables
    from airflow_provider_mzshare.hooks.mzshare import MzShareHook


class MzShareOperator(BaseOperator):
    """When an operator has changed tables, their assets in ``outlets`` (``table_asset("orders")``) get an event with
    tick, time and rows. An ``AssetAlias`` gets the assets of tables whose names are only known at run time.

    :param mzshare_conn_id: the connection to the catalog. (templated)
    """

    template_fields: Sequence[str] = ("mzshare_conn_id",)
    job_id: str | None = None
    """The job of the task's app, for the link."""
    spark_ui: str | None = None

    def __init__(self, *, mzshare_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mzshare_conn_id = mzshare_conn_id

    @cached_property
    def hook(self) -> MzShareHook:
        """Imported by the task and not by the DAG file, which is parsed again and again."""
        from airflow_provider_mzshare.hooks.mzshare import MzShareHook

        return MzShareHook(self.mzshare_conn_id)

    @property
    def poll_interval(self) -> float:
        return float(conf.getfloat("mzshare", "poll_interval", fallback=1.0))

    def execute(self, context: Context) -> Any:
        with no_retry_when_terminal(), closing(self.hook):
            return self.perform(context)

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """What the operator does; the return value is the task's."""

    def not_live(self, require_live: bool) -> NotLiveTables:
        """What to do about tables that are not live: refuse to read them, or write a warning to the log."""
        from airflow_provider_mzshare.control.lifecycle.liveness import refuse, remark

        def tell(tables: Sequence[Standing]) -> None:
            for table in tables:
                self.log.warning("%s", remark(table))

        return refuse if require_live else tell

    def note_job(self, job_id: str | None) -> None:
        """For the links of the task."""
        self.job_id = job_id
        self.spark_ui = self.hook.spark_ui(job_id) if job_id else None

    def publish(self, context: Context, tables: Iterable[str]) -> None:
        """Add how far these tables are to the events of their assets."""
        outlets = self.outlets or ()
        if not outlets:
            return
        events = context["outlet_events"]
        for name in tables:
            item = self.hook.table(name)
            table = full_name(item.name)
            asset = table_asset(table, self.mzshare_conn_id)
            has_tick = item.upper > 0
            extra = {
                "table": table,
                "tick": item.next_tick - 1 if has_tick else None,
                "mz_timestamp": item.upper - 1 if has_tick else None,
                "rows": item.rows,
            }
            for outlet in outlets:
                if isinstance(outlet, AssetAlias):
                    events[outlet].add(asset, extra=dict(extra))
                elif outlet == asset:
                    events[outlet].extra.update(extra)


def as_list(names: str | Iterable[str]) -> list[str]:
    """One name or several; also a list as text, because a template renders to text."""
    if isinstance(names, str) and names.lstrip().startswith("["):
        try:
            names = ast.literal_eval(names.strip())
        except (ValueError, SyntaxError):
            raise TerminalError(f"{names!r} is not a list of names") from None
    return [names] if isinstance(names, str) else [str(name) for name in names]
