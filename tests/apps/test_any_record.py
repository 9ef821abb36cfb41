"""Whatever a producer writes, the source goes on, and every way to read a record gives the same rows."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.connections import Connection, FixedConnections
from airflow_provider_mzshare.control.lifecycle.verification import verify_table
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support import extremes
from tests.support.arrivals import mint
from tests.support.kafka import create_topic
from tests.support.live import rows_at
from tests.support.raw_records import RawRecord, send_raw
from tests.support.stack import BOTH_WAYS, Stack, Table

PLAIN = Table("plain", (("n", "bigint"),))
TIMED = Table("timed", (("n", "bigint"),), include=("timestamp",))
RAW = Table("raw", format="bytes", include=("key",))
LATE = Table("late", (("n", "bigint"),), include=("timestamp",))
NAMES = ["plain", "timed", "raw"]


def check(stack: Stack, sent: list[RawRecord]) -> None:
    places = {(0, offset): record for offset, record in enumerate(sent)}
    numbered = {
        at: n for at in places if b'"n"' in (places[at].value or b"") for n in [at[1] % len(extremes.records())]
    }
    times = {at: extremes.moment(record.timestamp) for at, record in places.items()}
    plain = {(n, *at) for at, n in numbered.items()}
    timed = {(n, times[at], *at) for at, n in numbered.items() if times[at]}
    raw = {(record.value, record.key, *at) for at, record in places.items()}
    for name, wanted in (("plain", plain), ("timed", timed), ("late", timed), ("raw", raw)):
        assert dict(stack.rows(name)) == dict.fromkeys(wanted, 1), name
        assert set(stack.error_places(name)) == places.keys() - {row[-2:] for row in wanted}, name


def verify(stack: Stack, name: str) -> str:
    broker = FixedConnections({"kafka_test": Connection.from_dict({"name": "kafka_test", **stack.connection})})
    found = verify_table(stack.catalog, broker, str(stack.warehouse), stack.table(name), everything=True)
    return found.verdict


@BOTH_WAYS
def test_extremes_of_every_field_stop_nobody(stack: Stack, kafka: EmbeddedKafka) -> None:
    """In a tick that a predecessor left, in the running query, in a backfill, and in a check."""
    topic = create_topic(kafka, 1, config=extremes.TOPIC_CONFIG)
    source = stack.create("events", topic, [PLAIN, TIMED, RAW])
    send_raw(kafka, topic, extremes.records())
    mint(stack, source)
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
        for sent in (extremes.records(), [RawRecord(b'{"n":0}', timestamp=1)]):
            send_raw(kafka, topic, sent)
            stack.wait_caught_up(source, NAMES)
        read = [tick.get("apart", 0) for tick in stack.tick_stats(source) if tick.get("messages")]
        wanted = [1, 1, 1] if stack.driver_reads else [1, 1, 0]
        assert read == wanted, "only what Spark cannot read is read apart from it, if it is to read"
        stack.add(source, [LATE])
        backfill = stack.start_backfill("late")
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
    check(stack, [*extremes.records(), *extremes.records(), RawRecord(b'{"n":0}', timestamp=1)])
    assert rows_at(stack, "late").equals(rows_at(stack, "timed"))
    assert {name: verify(stack, name) for name in [*NAMES, "late"]} == dict.fromkeys([*NAMES, "late"], "exact")
