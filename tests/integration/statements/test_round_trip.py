"""Every field of CREATE can be read back: what SHOW CREATE prints makes the same again, in an empty catalog."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, create_topic, produce
from tests.support.statements import Session

MADE = """
CREATE SOURCE k FROM KAFKA CONNECTION broker (TOPIC '<topic>');
CREATE SOURCE k_at FROM KAFKA CONNECTION broker (TOPIC '<topic>', START OFFSET (1, 2))
  WITH (TRIGGER INTERVAL '250ms', MAX RECORDS PER TICK 10, IDLE TICK INTERVAL '1.5 s', BACKFILL RATE 0,
        CUTOVER WAIT '0 s');
CREATE SOURCE k_since FROM KAFKA CONNECTION broker (TOPIC '<topic>', START TIMESTAMP 1000);
CREATE SOURCE counter FROM LOAD GENERATOR COUNTER (SEED 4, TICK INTERVAL '10ms', BATCH SIZE 3, UP TO 99);
CREATE SOURCE "odd; ""sch""ema".auction FROM LOAD GENERATOR AUCTION (UP TO 0);
CREATE SOURCE kv FROM LOAD GENERATOR KEY VALUE (KEYS 7, VALUE SIZE 9, PARTITIONS 3) WITH (BACKFILL RATE 5);

CREATE TABLE k_json FROM SOURCE k FORMAT JSON;
CREATE TABLE k_text FROM SOURCE k (REFERENCE '<topic>') FORMAT TEXT INCLUDE KEY, OFFSET AS o, PARTITION AS "P";
CREATE TABLE k_bytes FROM SOURCE k FORMAT BYTES INCLUDE TIMESTAMP AS ts ENVELOPE NONE WITH (SNAPSHOT = false);
CREATE TABLE k_all (a boolean, b smallint, c int, d bigint, e real, f double precision, g numeric, "H" numeric(10,2),
                    i text, j date, k timestamp, l timestamptz, m jsonb)
  FROM SOURCE k_at FORMAT JSON WITH (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '90 minutes');
CREATE TABLE "Table" FROM SOURCE counter;
CREATE TABLE "odd; ""sch""ema"."it's" FROM SOURCE "odd; ""sch""ema".auction (REFERENCE bids)
  WITH (RETAIN HISTORY FOR '0 s', IGNORE COLUMNS (buyer), TEXT COLUMNS (amount, id));
CREATE TABLE bids FROM SOURCE "odd; ""sch""ema".auction (REFERENCE auction.bids) WITH (SNAPSHOT = false);
CREATE TABLE kv_table FROM SOURCE kv (REFERENCE key_value);
CREATE TABLE kv_newest FROM SOURCE kv ENVELOPE UPSERT;
CREATE TABLE k_keyed (v text) FROM SOURCE k KEY FORMAT JSON VALUE FORMAT JSON
  INCLUDE KEY ("Id" bigint, part text), OFFSET
  ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE AS "Why");
CREATE TABLE k_by_key FROM SOURCE k KEY FORMAT BYTES VALUE FORMAT TEXT INCLUDE KEY;

CREATE VIEW plain AS SELECT id, amount FROM bids WHERE amount > 3;
CREATE VIEW "odd; ""sch""ema"."A view" AS
  SELECT b.id AS "Id", p.amount FROM bids AS b JOIN plain AS p ON b.id = p.id;
"""
COUNT = 6 + 11 + 2


def definitions(sql: Session) -> dict[str, object]:
    """All that was defined, by name; incarnations and positions are the upstream's business."""
    with sql.catalog.read() as session:
        sources = {s.display: (s.spec, s.settings) for s in items.list_sources(session)}
        tables = {t.display: (t.spec, t.kind) for t in items.list_tables(session)}
    views = {str(row["name"]): sql.rows(f"SHOW CREATE VIEW {row['name']}") for row in sql.rows("SHOW VIEWS")}
    return {**sources, **tables, **views}


def test_what_is_shown_makes_the_same_in_an_empty_catalog(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [Record(b"{}", partition=number % 2) for number in range(10)])
    first, second, third = (Session(f"sqlite:///{tmp_path}/{name}.db", kafka) for name in ("one", "two", "three"))
    first.run(MADE.replace("<topic>", topic))
    # One that has moved on, so that SNAPSHOT = false is kept with what it means.
    first.tick({0: 5, 1: 5}, source="k")
    assert first.source("k").start == Position()
    names = [row["name"] for what in ("SOURCES", "TABLES", "VIEWS") for row in first.rows(f"SHOW {what}")]
    assert len(names) == COUNT
    shown = [str(first.rows(f"SHOW CREATE {name}")[0]["create_sql"]) for name in names]
    second.run("\n".join(shown))
    assert definitions(second) == definitions(first)
    again = [str(second.rows(f"SHOW CREATE {name}")[0]["create_sql"]) for name in names]
    assert again == shown
    third.run("BEGIN;" + "\n".join(shown) + "COMMIT;")
    assert definitions(third) == definitions(first), "also as one transaction"
    exists = [re.sub("^CREATE (SOURCE|TABLE|VIEW)", r"CREATE \1 IF NOT EXISTS", text) for text in shown]
    assert all("it exists" in message for message in second.run("".join(exists))), "and no drift is seen"
    for one in (first, second, third):
        one.catalog.close()
