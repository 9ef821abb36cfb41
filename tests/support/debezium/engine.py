"""A real Debezium, embedded in a small program, which reads a Postgres and writes to the test broker.

Its jars are pinned in ``jars.json`` and fetched when they are not there; the program is compiled by ``javac``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess
from airflow_provider_mzshare.errors import MissingProgram
from tests.support.postgres import OWNER, Postgres
from tests.support.waiting import wait_until

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "debezium"
NEVER = -1


@cache
def pins() -> tuple[jars.Jar, ...]:
    return tuple(jars.Jar(**entry) for entry in json.loads((HERE / "jars.json").read_text()))


def prepare() -> str:
    """Fetch and compile what is not there yet. Returns the class path."""
    jars.bring(pins(), CACHE)
    path = os.pathsep.join(str(CACHE / jar.file) for jar in pins())
    source = HERE / "Engine.java"
    classes = CACHE / f"classes-{hashlib.sha256(source.read_bytes() + path.encode()).hexdigest()[:12]}"
    if not classes.exists():
        made = Path(f"{classes}.{os.getpid()}")
        subprocess.run([_javac(), "-cp", path, "-d", str(made), str(source)], check=True)
        try:
            made.rename(classes)
        except OSError:  # Somebody else was first.
            shutil.rmtree(made)
    return f"{classes}{os.pathsep}{path}"


def _javac() -> str:
    beside = java_program().resolve().with_name("javac")
    found = str(beside) if beside.exists() else shutil.which("javac")
    if found is None:
        raise MissingProgram("javac was not found", hint="apt-get install openjdk-17-jdk-headless")
    return found


class Debezium:
    """One connector: what it has read is in files of ``folder``, so a later one of the same folder goes on.

    :param prefix: of its topics, which are ``prefix.schema.table`` and must be there.
    :param settings: Debezium's own, over those that are given here.
    """

    def __init__(
        self,
        folder: Path,
        postgres: Postgres,
        database: str,
        kafka: EmbeddedKafka,
        prefix: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._postgres, self._database = folder, postgres, database
        self.slot = prefix.replace("-", "_")
        self._class_path = prepare()
        self._settings = {
            "bootstrap": kafka.bootstrap,
            "name": prefix,
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(folder / "offsets"),
            "offset.flush.interval.ms": "0",
            "database.hostname": LOOPBACK,
            "database.port": str(postgres.port),
            "database.user": OWNER,
            "database.password": "",
            "database.dbname": database,
            "topic.prefix": prefix,
            "plugin.name": "pgoutput",
            "slot.name": self.slot,
            "publication.name": self.slot,
            "skipped.operations": "none",
            "poll.interval.ms": "50",
            "lsn.flush.timeout.ms": "10000",
            **(settings or {}),
        }
        self._process: ServerProcess | None = None

    @property
    def log(self) -> Path:
        return self._folder / "debezium.log"

    def start(self, *, hold_after: int = NEVER, **settings: str) -> None:
        """:param hold_after: it takes so many records and no more. :param settings: with ``_`` for a point."""
        more = {name.replace("_", "."): value for name, value in settings.items()}
        values = {**self._settings, **more, "hold.after": str(hold_after)}
        file = self._folder / "engine.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        self.log.unlink(missing_ok=True)
        command = [str(java_program()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += ["-cp", self._class_path, "Engine", str(file)]
        self._process = ServerProcess("Debezium", command, log=self.log)

    def wait_held(self, timeout: float = 90) -> None:
        self._live().wait_until(lambda: "held" in self.log.read_text().splitlines(), timeout)

    def kill(self) -> None:
        """As SIGKILL does it; whoever reads the slot next waits until Postgres knows."""
        if self._process:
            self._process.kill()
            self._process = None
        wait_until(lambda: not self._reads(), 30, "an end of the slot's reader")

    def check_alive(self) -> None:
        assert self._live().running, self._live().words

    def _live(self) -> ServerProcess:
        assert self._process, "it is not running"
        return self._process

    def _reads(self) -> bool:
        with self._postgres.connect(self._database) as connection:
            query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
            return connection.execute(query, [self.slot]).fetchone() is not None
