"""Legacy sources in a catalog, made by its own calls, and what a migration must and must not change of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import insert, inspect, text
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.kafka.specs import KafkaExportDetails, KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorExportDetails, LoadGeneratorSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow, ViewRow
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.objects import flags, items, legacy_sources
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, add_item, display_name, lock_namespace
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.control.upgrade.plan import Action
from airflow_provider_mzshare.control.views.resolving import resolve
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, LegacySpec, TableSpec
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.storage.crashpoints import VARIABLE
from tests.support.catalog import TOPIC_ID

ROOT = Path(__file__).parents[2]
COLUMNS = (ColumnSpec(name="id", type="bigint"), ColumnSpec(name="amount", type="numeric(12,2)"))
JSON = TableSpec(
    reference="orders",
    format="json",
    columns=COLUMNS,
    include=(Include(what="timestamp", name="at"),),
    details=KafkaExportDetails(topic="orders", metadata_columns=(Include(what="timestamp", name="at"),)),
)
KEYED = TableSpec(
    reference="orders",
    format="json",
    key_format="json",
    columns=(ColumnSpec(name="v", type="text"),),
    key_columns=(ColumnSpec(name="Id", type="bigint"), ColumnSpec(name="part", type="text")),
    include=(Include(what="offset", name="o"),),
    envelope="upsert",
    inline_errors="why",
)
CHANGED = TableSpec(reference="orders", format="json", columns=COLUMNS, primary_key=("id",), envelope="debezium")
SHAPES = {
    "json": JSON,
    "untyped": TableSpec(reference="orders", format="json"),
    "text": TableSpec(reference="orders", format="text", include=(Include(what="key", name="key"),)),
    "bytes": TableSpec(reference="orders", format="bytes", include=(Include(what="offset", name="o"),)),
    "keyed": KEYED,
    "changed": CHANGED,
}
BIDS = TableSpec(
    reference="bids",
    namespace="auction",
    format="none",
    columns=(ColumnSpec(name="id", type="bigint"), ColumnSpec(name="amount", type="text")),
    text_columns=("amount",),
    exclude_columns=("bid_time",),
    details=LoadGeneratorExportDetails(
        output="bids",
        partitions=(4,),
        columns=(
            ColumnSpec(name="id", type="bigint"),
            ColumnSpec(name="amount", type="integer"),
            ColumnSpec(name="bid_time", type="timestamptz"),
        ),
        keys=("id",),
    ),
)
USERS = TableSpec(
    reference="users",
    namespace="auction",
    format="none",
    columns=(ColumnSpec(name="id", type="bigint"), ColumnSpec(name="name", type="text")),
)
AUCTION = LoadGeneratorSpec(
    generator="auction",
    legacy=LegacySpec(shape="all_tables", text_columns=("bids.amount",), exclude_columns=("auction.bids.bid_time",)),
)
"""The options stand on the source too, as they were written."""


def allow_legacy(catalog: Catalog) -> None:
    with catalog.write() as session:
        flags.set_value(session, flags.FORCE_TABLES, "false")


def add_single(
    catalog: Catalog, name: Name, spec: TableSpec = JSON, *, progress: Name | None = None
) -> tuple[ItemId, ItemId]:
    """An old-style Kafka source that has the rows itself; returns its id and its output's."""
    source = KafkaSourceSpec(connection="kafka", topic=spec.reference, legacy=LegacySpec(shape="single"))
    with catalog.write() as session:
        source_id = items.create_source(session, name=name, spec=source, incarnation=TOPIC_ID, start=Position())
        output = add_output(session, source_id, spec)
        legacy_sources.add_progress(session, source_id, progress or (name[0], f"{name[1]}_progress"))
    return source_id, output


def add_output(session: Session, source_id: ItemId, spec: TableSpec) -> ItemId:
    lock_namespace(session)
    state = load_state(session, lock_source(session, source_id))
    return legacy_sources.add_output(session, state, spec, arrival_plans.create(state, "output", snapshot=True))


def _add_subsource(session: Session, source_id: ItemId, name: Name, spec: TableSpec) -> ItemId:
    lock_namespace(session)
    state = load_state(session, lock_source(session, source_id))
    arrival = arrival_plans.create(state, display_name(name), snapshot=True)
    return legacy_sources.add_subsource(session, state, name, spec, arrival)[0]


def add_multi(
    catalog: Catalog,
    name: Name,
    subsources: dict[Name, TableSpec] | None = None,
    spec: LoadGeneratorSpec = AUCTION,
) -> tuple[ItemId, list[ItemId]]:
    """An old-style source of several outputs; returns its id and its subsources'."""
    wanted = {("public", "bids"): BIDS, ("public", "users"): USERS} if subsources is None else subsources
    with catalog.write() as session:
        source_id = items.create_source(session, name=name, spec=spec, incarnation=TOPIC_ID, start=Position())
        ids = [_add_subsource(session, source_id, sub, of) for sub, of in wanted.items()]
        legacy_sources.add_progress(session, source_id, (name[0], f"{name[1]}_progress"))
    return source_id, ids


def add_view(catalog: Catalog, name: Name, query: str) -> ItemId:
    with catalog.write() as session:
        lock_namespace(session)
        resolved = resolve(session, query)
        view_id = add_item(session, "view", name)
        session.execute(insert(ViewRow).values(id=view_id, query=resolved.text))
        reads = [{"object_id": view_id, "referenced_id": one} for one in resolved.reads]
        session.execute(insert(DependencyRow), reads)
    return view_id


DEFINED = {
    "items", "definitions", "views", "dependencies", "comments", "outputs", "progress_names", "schemas",
    "system_settings",
}  # fmt: skip
"""Tables that only say what is defined; of sources and tables, the column ``spec`` does."""
_FORK = multiprocessing.get_context("fork")
_NEITHER = {"migrations", "alembic_version", "counters", "status_history"}


def definitions(catalog: Catalog) -> dict[str, list[tuple[Any, ...]]]:
    """Every row, and every spec, that says what is defined."""
    found = _rows(catalog, DEFINED)
    with catalog.read() as session:
        for name in ("sources", "tables"):
            found[name] = sorted(tuple(row) for row in session.execute(text(f"SELECT id, spec FROM {name}")))
    return found


def data(catalog: Catalog) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that says how far things have come: ticks, members, leases, collections, commits with their hashes."""
    with catalog.read() as session:
        everything = set(inspect(session.connection()).get_table_names())
    found = _rows(catalog, everything - DEFINED - _NEITHER)
    assert {"ticks", "membership", "commits", "collections", "tables", "sources", "jobs"} <= set(found)
    return found


def _rows(catalog: Catalog, tables: set[str]) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    with catalog.read() as session:
        for name in sorted(tables):
            columns = [c["name"] for c in inspect(session.connection()).get_columns(name)]
            kept = [f'"{c}"' for c in columns if c != "spec"]
            rows = session.execute(text(f"SELECT {', '.join(kept)} FROM {name}"))
            found[name] = sorted((tuple(row) for row in rows), key=repr)
    return found


def _run(url: str, action: Action, crash: str) -> None:
    os.environ[VARIABLE] = crash
    with Catalog(url) as catalog:
        run(catalog, Wanted(everything=True), Run(action, apply=True))


def killed(url: str, action: Action, crash: str) -> None:
    """Migrate all in a process of its own, which must not get any further."""
    process = _FORK.Process(target=_run, args=(url, action, crash))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, f"{crash}: {process.exitcode}"


def killed_command(url: str, action: Action, crash: str) -> None:
    """The same by the command itself: SQLite does not bear a fork while other threads of this process use it."""
    option = [] if action == "migrate" else [f"--{action}"]
    command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", "migrate", "--all", "--apply", *option]
    env = {**os.environ, "MZSHARE_CATALOG": url, VARIABLE: crash}
    ran = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, start_new_session=True
    )
    assert ran.returncode == -signal.SIGKILL, f"{crash}: {ran.returncode} {ran.stderr[-2000:]}"
