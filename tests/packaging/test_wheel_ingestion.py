"""A user with the wheel and nothing of the checkout ingests a topic, by the command line alone."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, create_topic, produce
from tests.support.wheel import WheelEnv

STATEMENTS = """
CREATE SOURCE events FROM KAFKA CONNECTION my_kafka (TOPIC '{topic}');
CREATE TABLE numbers (n bigint) FROM SOURCE events FORMAT JSON;
CREATE TABLE lines FROM SOURCE events FORMAT TEXT INCLUDE PARTITION, OFFSET;
"""


def test_an_ingestion_from_the_installed_wheel(
    wheel_env: WheelEnv, kafka: EmbeddedKafka, jars: Path, tmp_path: Path
) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [Record(json.dumps({"n": n}).encode(), partition=n % 2) for n in range(500)])
    script = tmp_path / "tables.sql"
    script.write_text(STATEMENTS.format(topic=topic))
    variables = {
        "MZSHARE_HOME": str(tmp_path / "home"),
        "MZSHARE_JARS": str(jars),
        "MZSHARE_MASTER": "local[2]",
        "AIRFLOW_CONN_MY_KAFKA": json.dumps(
            {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap, "group.id": "any"}}
        ),
    }

    def mzshare(*arguments: str) -> str:
        return wheel_env.run(["mzshare", *arguments], timeout=180, **variables)

    mzshare("sql", "-f", str(script))
    mzshare("reconcile")
    try:
        mzshare("wait", "events", "--for", "caught-up", "--timeout", "150")
        rows = json.loads(mzshare("read", "numbers", "--output", "json"))
        assert sorted(row["n"] for row in rows) == list(range(500))
        lines = list(csv.DictReader(io.StringIO(mzshare("read", "lines", "--limit", "3", "--output", "csv"))))
        assert [set(line) for line in lines] == [{"data", "partition", "offset"}] * 3
        (source,) = json.loads(mzshare("status", "--output", "json"))
        assert source["health"] in {"running", "idle"}
        assert source["lag"] == 0
        assert "tick 1 committed" in mzshare("logs", "events")
    finally:
        mzshare("stop", "events")
    (source,) = json.loads(mzshare("status", "--output", "json"))
    assert source["health"] == "stopped"
