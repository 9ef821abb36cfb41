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
from airflow_provider_mzshare.wiring import Wiring

StartOption = Annotated[
    bool | None,
    typer.Option(
        "--start/--no-start",
        help="Start backfills that nobody has started. Default: only on the machine where their source's app runs.",
        show_default=False,
    ),
]

if TYPE_CHECKING:
    from airflow_provider_mzshare.connectors.connections import ConnectionStore
    from airflow_provider_mzshare.control.catalog import Catalog
    from airflow_provider_mzshare.control.catalog.objects.items import SourceItem, TableItem


def settings() -> Settings:
    """The settings from the environment. Their umask holds for everything that this process writes from here on."""
    chosen = Settings.from_environment()
    os.umask(chosen.umask)
    return chosen


@contextmanager
def open_catalog(chosen: Settings, *, create: bool = False, keep: bool = True) -> Iterator[Catalog]:
    """:param create: make an embedded catalog that is not there yet.
    :param keep: False, for a dry run: a new catalog is made in a temporary folder and removed at the end.
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


def wiring(catalog: Catalog, chosen: Settings) -> Wiring:
    """The parts put together on an open catalog."""
    return Wiring(chosen, connections, catalog=catalog)


def find_item(catalog: Catalog, name: str) -> SourceItem | TableItem:
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_item as find

    return find(catalog, name)


def find_source(catalog: Catalog, name: str) -> SourceItem:
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_source as find

    return find(catalog, name)


def find_table(catalog: Catalog, name: str) -> TableItem:
    from airflow_provider_mzshare.control.lifecycle.typed_names import find_table as find

    return find(catalog, name)
