"""What only the rows of a table can say of a tick's events: which of them are error rows, and whether they can be
applied at all.

Asked before the errors of the tick are committed. The answer rests on the rows after the tick before, whoever asks and
however ticks are grouped: so the errors are the same in every attempt that reads the same records. From an upstream
that compacts an attempt may read fewer: then the errors that were committed first count, and no data is put that does
not go with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.schema import TICK
from airflow_provider_mzshare.core.ticklog.table_states import TRUNCATED
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.commit import Content
from airflow_provider_mzshare.storage.collections.keyed import KeyEvents
from airflow_provider_mzshare.storage.collections.rows import snapshot_of
from airflow_provider_mzshare.storage.fanout.events import as_errors
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan
from airflow_provider_mzshare.storage.fanout.results import MemberResult

Lanes = Callable[[], int]
"""How many lanes the upstream has now."""


def why_not(events: KeyEvents, collection: Collection, place: Place, lanes: Lanes) -> str | None:
    """Why the events cannot be applied; None: they can.

    A record that takes all rows away has an order only against the records of its own lane.
    """
    found = events.cleared(collection)
    if found is None or place.lane is None or (count := lanes()) == 1:
        return None
    at = found.select(list(place.names)).to_pylist()[0]
    return (
        f"{TRUNCATED}: {place.tell(tuple(at.values()))} truncates the table, and the topic has {count} {place.lane}s: "
        "nothing says which records of the others came before"
    )


def error_rows(events: KeyEvents, collection: Collection, plan: MemberPlan) -> pa.RecordBatch | None:
    """Events that the collection's rows make error rows, as far as the errors do not have them; None if there are none.

    :param collection: as it is before the events, loaded.
    """
    found = events.refused(collection)
    if found is None:
        return None
    refused, texts = found
    due = [number for number, tick in enumerate(refused.column(TICK).to_pylist()) if tick > plan.errors_after]
    return as_errors(refused.take(pa.array(due, pa.int64())), [texts[number] for number in due], plan.place)


def contradiction(events: KeyEvents, data: Collection, errors: Collection, place: Place) -> str | None:
    """Why the events do not go with the errors that an earlier attempt has committed; None: they do.

    A value that is kept is that of a row of before, which may be another one when records are gone. Then a record would
    be a row and an error row, or neither.

    :param data: as it is before the events, loaded.
    """
    kept = events.kept(data)
    if kept is None:
        return None
    ticks, found = kept.column(TICK), events.refused(data)
    of_these = (pc.field(TICK) >= pc.min(ticks)) & (pc.field(TICK) <= pc.max(ticks))
    errors.refresh()
    rows = snapshot_of(errors.table, errors.uri).scan(place.names, of_these)
    committed = {at for batch in rows for at in _places(batch, place)} & _places(kept, place)
    wrong = committed ^ (_places(found[0], place) if found else set())
    if not wrong:
        return None
    return (
        f"{place.tell(min(wrong))} has a value that was not sent, and is taken from another row than in an earlier "
        "attempt: the upstream has removed records in between. RESNAPSHOT reads the table anew"
    )


def _places(rows: pa.Table | pa.RecordBatch, place: Place) -> set[tuple[Any, ...]]:
    return set(zip(*(rows.column(name).to_pylist() for name in place.names), strict=True))


def records_of(data: Content, files: MemberResult) -> int:
    """How many records the data is made of. A change of a row may be two events."""
    if isinstance(data, KeyEvents) and data.change is not None:
        return data.records
    return files.rows("data")


def first_error(errors: pa.RecordBatch, place: Place) -> str:
    """Why a table stops that takes no error rows: the record with the lowest place, as the pass has it."""
    first = min(errors.select([*place.names, "error"]).to_pylist(), key=lambda row: tuple(row.values()))
    return f"{place.tell(tuple(first.values())[:-1])} cannot be decoded: {first['error']}"
