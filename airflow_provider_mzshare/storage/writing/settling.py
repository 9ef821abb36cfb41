"""What only the rows of a table can say of a tick's events: which of them are error rows, and whether they can be
applied at all.

Asked before the errors of the tick are committed. The answer rests on the rows after the tick before, whoever asks and
however ticks are grouped: so the errors are the same in every attempt.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.schema import TICK
from airflow_provider_mzshare.core.ticklog.table_states import TRUNCATED
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.keyed import KeyEvents
from airflow_provider_mzshare.storage.fanout.events import as_errors
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan

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


def first_error(errors: pa.RecordBatch, place: Place) -> str:
    """Why a table stops that takes no error rows: the record with the lowest place, as the pass has it."""
    first = min(errors.select([*place.names, "error"]).to_pylist(), key=lambda row: tuple(row.values()))
    return f"{place.tell(tuple(first.values())[:-1])} cannot be decoded: {first['error']}"
