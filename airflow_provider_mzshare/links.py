"""Links from tasks to the status page, to the logs of jobs and to Spark; empty where such a page is not served."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import attrs
from airflow.sdk import BaseOperatorLink, conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PREFIX = "/mzshare"


def page(path: str) -> str:
    """An address of the status page; empty when it is switched off."""
    if not conf.getboolean("mzshare", "status_page", fallback=False):
        return ""
    base = conf.get("api", "base_url", fallback="") or ""
    return f"{base.rstrip('/')}{PREFIX}{path}"


@attrs.define()
class StatusLink(BaseOperatorLink):
    """The present status of the task's table or source."""

    name = "mzshare status"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        subject = getattr(operator, "table", None) or getattr(operator, "source", None)
        return page(f"/status?name={quote(str(subject))}" if subject else "/status")


@attrs.define()
class JobLogLink(BaseOperatorLink):
    """The log of the app that a task has started."""

    name = "mzshare job log"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        job_id = getattr(operator, "job_id", None)
        return page(f"/jobs/{quote(str(job_id), safe='')}/log") if job_id else ""


@attrs.define()
class SparkUILink(BaseOperatorLink):
    """Spark's own pages of the app that a task has started, where ``spark.ui.enabled`` is on."""

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return getattr(operator, "spark_ui", None) or ""
