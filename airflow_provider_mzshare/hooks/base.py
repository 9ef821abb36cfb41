"""An Airflow connection to a catalog: its settings, the open catalog, and the Test button. Does nothing by itself."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from airflow.sdk import BaseHook

from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.errors import MzShareError, UnknownConnection
from airflow_provider_mzshare.hooks.connections import AirflowConnections, default_connections
from airflow_provider_mzshare.hooks.settings import CONN_TYPE, settings_of
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.wiring import Wiring

if TYPE_CHECKING:
    # DAG files import this module at every parse: so a task imports what only running tasks need.
    from airflow_provider_mzshare.compute.launchers.registry import Launchers
    from airflow_provider_mzshare.control.catalog import Catalog
    from airflow_provider_mzshare.control.supervision.reconciler import Reconciler
    from airflow_provider_mzshare.control.supervision.status import StatusReader

DEFAULT_CONN_ID = "mzshare_default"
START_SECONDS = 180.0
"""How long an app may take to come up."""
GRACE_SECONDS = 60.0
"""How long an app may take to end its current tick."""


class CatalogHook(BaseHook):
    """:param mzshare_conn_id: a connection of type ``mzshare``. The default one may be missing: then the
    ``MZSHARE_…`` variables of the environment say where things are.
    """

    conn_name_attr: ClassVar[str] = "mzshare_conn_id"
    default_conn_name: ClassVar[str] = DEFAULT_CONN_ID
    conn_type: ClassVar[str] = CONN_TYPE
    hook_name: ClassVar[str] = "mzshare catalog"

    def __init__(self, mzshare_conn_id: str = DEFAULT_CONN_ID) -> None:
        super().__init__()
        self.mzshare_conn_id = mzshare_conn_id

    @cached_property
    def settings(self) -> Settings:
        try:
            return settings_of(AirflowConnections().get(self.mzshare_conn_id))
        except UnknownConnection:
            if self.mzshare_conn_id != DEFAULT_CONN_ID:
                raise
            return Settings.from_environment()

    @cached_property
    def connections(self) -> ConnectionStore:
        """The store of connections to upstreams."""
        return default_connections()

    # ── the catalog ───────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def wiring(self) -> Wiring:
        return Wiring(self.settings, lambda: self.connections)

    @property
    def catalog(self) -> Catalog:
        """Opened when first asked for, and kept until ``close``."""
        return self.wiring.catalog

    def get_conn(self) -> Catalog:
        return self.catalog

    def ensure_catalog(self) -> Catalog:
        """The catalog. An embedded catalog that does not exist yet is created; one on a server only when asked for."""
        return self.wiring.ensure_catalog()

    def close(self) -> None:
        """Does nothing if nothing was opened, for example because a setting was wrong."""
        if "wiring" in vars(self):
            self.wiring.close()

    def test_connection(self) -> tuple[bool, str]:
        """Test that the catalog can be used, the warehouse can be written to, and the jars are the pinned ones."""
        from airflow_provider_mzshare.control.supervision.doctor import examine_places

        try:
            findings = list(examine_places(self.settings))
        except MzShareError as error:
            return False, error.line
        finally:
            self.close()
        if bad := [finding for finding in findings if not finding.ok]:
            return False, "; ".join(f"{f.detail}{f'. Try: {f.hint}' if f.hint else ''}" for f in bad)
        return True, "; ".join(finding.detail for finding in findings)

    # ── what works on it ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def launchers(self) -> Launchers:
        return self.wiring.launchers

    def reconciler(self, *, stop_seconds: float = GRACE_SECONDS) -> Reconciler:
        return self.wiring.reconciler(stop_seconds=stop_seconds)

    def status_reader(self, *, ask_upstreams: bool = False) -> StatusReader:
        return self.wiring.status_reader(ask_upstreams=ask_upstreams)
