"""Runs the shared app of the checkout that it is started in, for bench_live; its own file may be another checkout's.

Takes what to do as words, says when the app is warm, waits for a line, and answers with the ticks since.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import select

from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog.state import SourceState
from tests.perf.peers.task import COLUMNS, columns_of
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

WARM_TICKS = 20
WARM_SECONDS = 300.0


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def main(folder: Path, bootstrap: str, topic: str, tables: int, *more: str) -> None:
    folder.mkdir()
    broker: Any = SimpleNamespace(bootstrap=bootstrap)
    stack = Stack(folder, broker, open_catalog(f"sqlite:///{folder / 'catalog.db'}"))
    if more:
        source = keyed_source(stack, topic, tables, *more)
    else:
        listed = [Table(f"t{number}", columns_of(number)) for number in range(tables)]
        source = stack.create("live", topic, listed, SourceSettings())
    handle = stack.launch(source)
    store = stack.store(source)
    wait_until(lambda: is_warm(store.load()), WARM_SECONDS, "a warm app", every=0.5)
    say({"pid": handle.pid})
    sys.stdin.readline()
    stack.launcher.request_stop(handle)
    wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "the app's end")
    query = select(TickRow.committed_at, TickRow.upper, TickRow.stats).where(TickRow.source_id == source)
    with stack.catalog.read() as session:
        rows = session.execute(query.order_by(TickRow.number)).all()
    say(
        [
            {
                "at": row.committed_at,
                "upper": {int(partition): row.upper[partition] for partition in row.upper},
                "stats": json.loads(row.stats or "{}"),
            }
            for row in rows
            if row.committed_at
        ]
    )


def is_warm(state: SourceState) -> bool:
    """All tables take part: one whose index was late has come back."""
    return state.last_number > WARM_TICKS and all(table.status == "live" for table in state.tables.values())


def keyed_source(stack: Stack, topic: str, tables: int, kind: str, keys: str) -> ItemId:
    """Tables with all columns and the key: kept by the key and full already, or appended to."""
    from tests.perf.peers.ours_keyed import KeyedTable, filled

    if kind == "append":
        listed = [Table(f"t{number}", COLUMNS, include=("key",)) for number in range(tables)]
        return stack.create("live", topic, listed, SourceSettings())
    source = stack.create("live", topic, [KeyedTable(f"t{number}") for number in range(tables)], SourceSettings())
    for number in range(tables):
        filled(stack, f"t{number}", int(keys), vectors=True)
    return source


if __name__ == "__main__":
    home, broker_address, name, count, *rest = sys.argv[1:]
    main(Path(home), broker_address, name, int(count), *rest)
