"""A topic behind SASL and ACLs is ingested, and the password is nowhere to be seen."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from pathlib import Path

import psutil

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import USERS, Record, allow, create_topic, groups, produce, sasl_config
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

TABLE = Table("numbers", (("n", "bigint"),))


def spellings(secret: str) -> list[bytes]:
    return [secret.encode(), base64.b64encode(secret.encode())]


def visible_to_others(handle: Handle) -> bytes:
    """Arguments and environments of everything in the app's session."""
    seen = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == handle.pid:
                seen += [" ".join(process.cmdline()), json.dumps(process.environ())]
    assert len(seen) >= 4, "driver and JVM at least"
    return "\n".join(seen).encode()


def test_a_sasl_topic_is_ingested_and_its_password_is_nowhere(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    topic = create_topic(kafka, 2)
    allow(kafka, "alice", topic)
    produce(kafka, topic, [Record(json.dumps({"n": n}).encode(), partition=n % 2) for n in range(300)])
    stack = Stack(
        tmp_path,
        kafka,
        Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"),
        connection={"conn_type": "kafka", "extra": sasl_config(kafka, "alice")},
    )
    source = stack.create("events", topic, [TABLE])
    before = set(groups(kafka))
    handle = stack.launch(source)
    try:
        stack.wait_caught_up(source, ["numbers"], timeout=120)
        assert not any(s in visible_to_others(handle) for s in spellings(USERS["alice"]))
        held = [path for path in tmp_path.rglob("*") if path.is_file()]
        leaks = [p for p in held if any(s in p.read_bytes() for s in spellings(USERS["alice"]))]
        assert not leaks, "the password is in a file (catalog, log, checkpoint, Delta log)"
    finally:
        stack.launcher.request_stop(handle)
        wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "the app's end")
        stack.launcher.kill(handle)
    stack.check(topic, [TABLE])
    assert set(groups(kafka)) <= before, "no consumer group is left on the broker"
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [p for p in held if any(s in p.read_bytes() for s in spellings(USERS["alice"]))]
