"""The plugin: a read-only status page in Airflow's API server, only where it is switched on."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.sdk import conf

from airflow_provider_mzshare.links import PREFIX, JobLogLink, SparkUILink, StatusLink


def _apps() -> list[dict[str, Any]]:
    """Airflow does not check who asks for a plugin's pages, so they are off unless an administrator wants them."""
    if not conf.getboolean("mzshare", "status_page", fallback=False):
        return []
    from airflow_provider_mzshare.plugins.status_page import make_app

    return [{"app": make_app(), "url_prefix": PREFIX, "name": "mzshare"}]


class MzSharePlugin(AirflowPlugin):
    name = "mzshare"
    fastapi_apps = _apps()
    operator_extra_links = [StatusLink(), JobLogLink(), SparkUILink()]  # noqa: RUF012
