"""What commands share: settings, the open catalog, connections. All made when first needed, for a quick start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from airflow_provider_mzshare.folders import make_folder
from airflow_provider_mzshare.settings import Settings

StartOption = Annotated[
    bool | None,
    typer.Option(
        "--start/--no-start",
        help="Start backfills that nobody has started. Default: where the app of their source runs.",
        show_default=False,
    ),
]

if TYPE_CHECKING:
    from airflow_provider_mzshare.compute.launchers.registry import Launchers
    from airflow_provider_mzshare.connectors.connections import ConnectionStore
    from airflow_provider_mzshare.control.catalog import Catalog
    from airflow_provider_mzshare.control.catalog.objects.items import SourceItem, TableItem
    from airflow_provider_mzshare.control.supervision.backfill_starter import BackfillStarter
    from airflow_provider_mzshare.control.supervision.reconciler import Reconciler
    from airflow_provider_mzshare.control.supervision.status import StatusReader


def settings() -> Settings:
    """And what this process writes from here on, it writes as they say."""
    chosen = Settings.from_environment()
    os.umask(chosen.umask)
    return chosen


@contextmanager
def open_catalog(chosen: Settings, *, create: bool = False, keep: bool = True) -> Iterator[Catalog]:
    """:param create: make an embedded catalog that is not there yet.
    :param keep: False, for a trial: such a new one is made elsewhere and thrown away.
    """
    from airflow_provider_mzshare.control import composition

    catalog = composition.open_catalog(chosen.catalog_url)
    with ExitStack() as cleanup:
        cleanup.callback(catalog.close)
        if create and catalog.is_embedded and catalog.revision() is None:
            if keep:
                make_folder(chosen.home, chosen.umask)
            else:
                catalog = composition.open_catalog(
                    f"sqlite:///{cleanup.enter_context(TemporaryDirectory(prefix='mzshare-'))}/catalog.db"
                )
                cleanup.callback(catalog.close)
            catalog.ensure()
        yield catalog


def connections() -> ConnectionStore:
    from airflow_provider_mzshare.hooks.connections import default_connections

    return default_connections()


def launchers(chosen: Settings) -> Launchers:
    from airflow_provider_mzshare.compute.launchers.registry import Launchers

    return Launchers(chosen)


def reconciler(catalog: Catalog, chosen: Settings, *, stop_seconds: float | None = None) -> Reconciler:
    from airflow_provider_mzshare.control.supervision.reconciler import STOP_SECONDS, Reconciler

    grace = STOP_SECONDS if stop_seconds is None else stop_seconds
    return Reconciler(catalog, chosen, connections(), launchers(chosen), stop_seconds=grace)


def backfill_starter(catalog: Catalog, chosen: Settings, start: bool | None) -> BackfillStarter:
    from airflow_provider_mzshare.control.supervision.backfill_starter import BackfillStarter

    return BackfillStarter(catalog, chosen, connections(), launchers(chosen), start=start)


def status_reader(catalog: Catalog, chosen: Settings, *, ask_upstreams: bool = False) -> StatusReader:
    from airflow_provider_mzshare.control.supervision.status import StatusReader

    return StatusReader(catalog, launchers(chosen), connections() if ask_upstreams else None)


def find_item(catalog: Catalog, name: str) -> SourceItem | TableItem:
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_item as find

    return find(catalog, name)


def find_source(catalog: Catalog, name: str) -> SourceItem:
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_source as find

    return find(catalog, name)


def find_table(catalog: Catalog, name: str) -> TableItem:
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_table as find

    return find(catalog, name)
