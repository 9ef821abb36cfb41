"""Imports inside functions: all that are left, each with its reason. None of them is there to get around a cycle.

A new one fails here, and so does one that is gone: the list is exact.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_mzshare"
CODE = (PACKAGE, "spark_apps")

COMMAND = "start-up time: a command loads its own parts and no others, and --help none"
PARSE = "start-up time: DAG files are parsed over and over, and only a task needs this"
SELDOM = "start-up time: few calls come here, and what they need takes long to load"
SPARK = "an optional dependency: the module is imported where Spark is not, or must not be loaded"
AIRFLOW = "an optional dependency: Airflow is asked only where it is configured, and loads for seconds"

KEPT = {
    COMMAND: [
        "cli/apps.py _change: control.catalog.objects.items",
        "cli/apps.py retire: control.supervision.retiring",
        "cli/catalog.py repair: control.lifecycle.repair",
        "cli/changes.py changes: control.lifecycle.change_following",
        "cli/changes.py changes: control.lifecycle.change_stream",
        "cli/changes.py changes: control.lifecycle.typed_names",
        "cli/check.py check: control.hints",
        "cli/check.py check: control.lifecycle.check_table",
        "cli/context.py connections: hooks.connections",
        "cli/context.py find_item: control.lifecycle.typed_names",
        "cli/context.py find_source: control.lifecycle.typed_names",
        "cli/context.py find_table: control.lifecycle.typed_names",
        "cli/context.py open_catalog: control.composition",
        "cli/doctor.py doctor: control.supervision.doctor",
        "cli/holds.py _list: control.lifecycle.holding",
        "cli/holds.py drop: control.catalog.log.holds",
        "cli/jars.py _fetch_progress: rich.progress",
        "cli/jars.py jars: compute.jars",
        "cli/logs.py logs: control.supervision.runs",
        "cli/maintain.py maintain: control.lifecycle.typed_names",
        "cli/maintain.py maintain: control.supervision.maintenance",
        "cli/migrate.py _print: control.upgrade.plan_sql",
        "cli/migrate.py migrate: control.upgrade.choosing",
        "cli/migrate.py migrate: control.upgrade.executor",
        "cli/path.py path: control.lifecycle.locations",
        "cli/push.py push: control.lifecycle.pushing",
        "cli/push.py push: storage.journal.lines",
        "cli/read.py rows_of: storage.collections.values",
        "cli/read.py read: control.lifecycle.liveness",
        "cli/read.py read: control.lifecycle.read_table",
        "cli/read.py read: control.lifecycle.typed_names",
        "cli/read.py tell_not_live: control.lifecycle.liveness",
        "cli/references.py references: control.catalog.objects.references",
        "cli/references.py references: control.statements.handlers.references",
        "cli/render.py _print_table: rich",
        "cli/render.py _print_table: rich.table",
        "cli/render.py _print_table: rich.text",
        "cli/render.py _width: rich.cells",
        "cli/render.py console: rich.console",
        "cli/sql.py _bring_up: control.supervision.backfill_starter",
        "cli/sql.py close: control.lifecycle.plan_text",
        "cli/sql.py sql: control.statements.run",
        "cli/verify.py verify: control.catalog.objects.lookup",
        "cli/verify.py verify: control.lifecycle.typed_names",
        "cli/verify.py verify: control.lifecycle.verification",
        "cli/wait.py display: rich.progress",
    ],
    PARSE: [
        "client.py _connections: hooks.connections",
        "client.py changes: control.lifecycle.change_stream",
        "client.py changes: control.lifecycle.typed_names",
        "client.py follow: control.lifecycle.change_following",
        "client.py _asked: control.lifecycle.change_stream",
        "client.py follow: control.lifecycle.typed_names",
        "client.py hold: control.lifecycle.holding",
        "client.py frame: control.lifecycle.read_table",
        "client.py read_cut: control.lifecycle.read_table",
        "client.py open: control.lifecycle.liveness",
        "client.py open: control.lifecycle.read_table",
        "client.py open: control.lifecycle.typed_names",
        "client.py pusher: control.lifecycle.pushing",
        "client.py path: control.lifecycle.locations",
        "client.py path: control.lifecycle.typed_names",
        "client.py sql: control.statements.run",
        "client.py verify: control.lifecycle.typed_names",
        "client.py verify: control.lifecycle.verification",
        "client.py wait: control.lifecycle.typed_names",
        "wiring.py backfill_starter: control.supervision.backfill_starter",
        "wiring.py catalog: control.composition",
        "wiring.py launchers: compute.launchers.registry",
        "wiring.py reconciler: control.supervision.reconciler",
        "wiring.py status_reader: control.supervision.status",
        "wiring.py waiter: control.supervision.live_wait",
        "assets/mzshare.py table_asset: airflow.sdk",
        "assets/mzshare.py table_uri: control.sql.script",
        "hooks/base.py test_connection: control.supervision.doctor",
        "hooks/mzshare.py maintain: control.supervision.maintenance",
        "hooks/mzshare.py migrate: control.upgrade.executor",
        "hooks/mzshare.py push: control.lifecycle.pushing",
        "hooks/mzshare.py verify: control.lifecycle.verification",
        "operators/base.py hook: hooks.mzshare",
        "operators/base.py not_live: control.lifecycle.liveness",
        "operators/changes.py _bound: hooks.changes",
        "operators/changes.py _defer: triggers.offsets",
        "operators/changes.py _is_reached: control.lifecycle.converged_wait",
        "operators/changes.py _slice: hooks.changes",
        "operators/changes.py _take_held: core.ticklog.holds",
        "operators/changes.py _told: hooks.changes",
        "operators/changes.py _wait: control.lifecycle.live_decision",
        "operators/changes.py execute_complete: events",
        "operators/changes.py take: hooks.exports",
        "operators/checking.py hook: hooks.versioning",
        "operators/migrations.py _run: control.upgrade.choosing",
        "operators/migrations.py _run: control.upgrade.executor",
        "operators/migrations.py _run: control.upgrade.plan_sql",
        "operators/migrations.py _wait: airflow.providers.standard.triggers.temporal",
        "operators/migrations.py perform: control.upgrade.window",
        "operators/push.py perform: hooks.pushing",
        "operators/reading.py perform: cli.render",
        "operators/reading.py perform: control.lifecycle.read_table",
        "operators/reading.py perform: hooks.exports",
        "operators/reading.py perform: storage.collections.values",
        "operators/sql.py perform: cli.render",
        "operators/swapping.py hook: hooks.versioning",
        "operators/swapping.py perform: control.statements.blue_green",
        "plugins/mzshare.py _apps: plugins.status_page",
        "triggers/catalogs.py _ask: control.composition",
    ],
    SELDOM: [
        "connectors/postgres/snapshot_parts.py __call__: adbc_driver_manager",
        "connectors/postgres/snapshot_parts.py __call__: adbc_driver_postgresql",
        "control/composition.py _printer: control.statements.handlers.show",
        "connectors/kafka/java_settings.py _plain_key: cryptography.exceptions",
        "connectors/kafka/java_settings.py _plain_key: cryptography.hazmat.primitives",
        "control/catalog/database/schema_versions.py migrate: alembic",
        "control/catalog/database/schema_versions.py migrate: alembic.config",
        "control/lifecycle/locations.py locate: storage.collections.collection",
    ],
    SPARK: [
        "compute/querying.py _session: pyspark",
        "compute/querying.py _session: pyspark.sql",
        "compute/querying.py _told: py4j.protocol",
        "compute/querying.py _told: pyspark.errors",
        "compute/querying.py batches: pyspark.sql.pandas.types",
        "compute/session.py _end_jvm: pyspark",
        "compute/session.py open_session: pyspark.sql",
        "connectors/journal/reader.py __init__: connectors.journal.datasource",
        "connectors/postgres/reader.py __init__: connectors.postgres.datasource",
        "connectors/load_generator/reader.py __init__: connectors.load_generator.datasource",
        "storage/collections/rows.py _spark_column: pyspark.sql.functions",
        "storage/collections/rows.py _spark_column: pyspark.sql.pandas.types",
    ],
    AIRFLOW: [
        "hooks/connections.py _from_backends: airflow.models.connection",
        "hooks/connections.py _from_backends: airflow.sdk.exceptions",
        "hooks/connections.py _from_task: airflow.sdk",
        "hooks/connections.py _from_task: airflow.sdk.exceptions",
        "hooks/exports.py _whole_file: airflow.sdk",
        "hooks/pushing.py _opened: airflow.sdk",
    ],
}
"""By reason: file, function and what it imports, without the package's own name."""


def test_the_list_of_imports_inside_functions_is_exact() -> None:
    listed = sorted(line for lines in KEPT.values() for line in lines)
    assert listed == sorted({f"{file} {function}: {name}" for file, function, name in _inside_functions()})


@pytest.mark.parametrize("reason", [COMMAND, PARSE, SELDOM, SPARK, AIRFLOW])
def test_each_reason_has_some(reason: str) -> None:
    assert KEPT[reason]


def test_none_gets_around_a_cycle() -> None:
    """What is imported never imports, however far, the module that imports it."""
    graph = _graph()
    for file, function, name in _inside_functions():
        importer = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
        assert importer not in _reached(graph, name), f"{file} {function}: {name} imports {importer}"


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    open_ends = [start]
    while open_ends:
        one = open_ends.pop()
        if one not in seen:
            seen.add(one)
            open_ends += graph[one]
    return seen


def _graph() -> dict[str, set[str]]:
    """What the import of each module of ours imports of ours."""
    graph: dict[str, set[str]] = defaultdict(set)
    for file in _files():
        importer = ".".join(Path(_short(file)).with_suffix("").parts).removesuffix(".__init__")
        for node, inside in _imports(ast.parse(file.read_text()), None):
            if inside is None:
                graph[importer] |= set(_names(node))
    return graph


def _inside_functions() -> Iterator[tuple[str, str, str]]:
    for file in _files():
        for node, function in _imports(ast.parse(file.read_text()), None):
            if function is not None:
                yield from ((_short(file), function, name) for name in _names(node))


def _imports(tree: ast.AST, function: str | None) -> Iterator[tuple[ast.Import | ast.ImportFrom, str | None]]:
    """With the function that each is in; those that only a type checker sees are left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, function
        name = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield from _imports(node, name)


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Modules; ``from package import module`` is one of that module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    parent = node.module or ""
    for alias in node.names:
        inner = f"{parent}.{alias.name}"
        place = ROOT.joinpath(*inner.split("."))
        is_module = place.is_dir() or place.with_suffix(".py").is_file()
        yield (inner if is_module and parent.startswith(PACKAGE) else parent).removeprefix(f"{PACKAGE}.")


def _short(file: Path) -> str:
    return file.relative_to(ROOT).as_posix().removeprefix(f"{PACKAGE}/")


def _files() -> list[Path]:
    return sorted(file for folder in CODE for file in (ROOT / folder).rglob("*.py"))
