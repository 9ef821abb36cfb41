"""A source that is pushed into, in a home of its own: by Python, by commands here or in processes, and read back."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from airflow_provider_mzshare import MzShare, connect
from airflow_provider_mzshare.cli.main import run
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.lifecycle.typed_names import find_source
from airflow_provider_mzshare.core.ids import JobId, JournalId
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import LeaseTaken
from airflow_provider_mzshare.storage.crashpoints import VARIABLE
from airflow_provider_mzshare.storage.journal.writer import LIMITS, JournalWriter, Limits
from tests.support.journal_memory import open_writer, read_values
from tests.support.waiting import wait_until

LEASE_SECONDS = 1.0
ROOT = Path(__file__).parents[2]


@dataclass
class Inbox:
    """:param url: of its catalog."""

    folder: Path
    url: str
    partitions: int = 1
    warehouse: str | None = None
    mz: MzShare = field(init=False)

    def __post_init__(self) -> None:
        os.environ["MZSHARE_LEASE_SECONDS"] = str(LEASE_SECONDS)
        try:
            self.mz = connect(home=self.folder, catalog=self.url, warehouse=self.warehouse)
        finally:
            del os.environ["MZSHARE_LEASE_SECONDS"]
        self.mz.sql(f"CREATE SOURCE inbox FROM JOURNAL (PARTITIONS {self.partitions})")
        self.catalog = Catalog(self.url)

    def close(self) -> None:
        self.mz.close()
        self.catalog.close()

    @property
    def store(self) -> JournalStore:
        journal = find_source(self.catalog, "inbox").incarnation
        return journals_of(self.catalog, self.root).open(JournalId(journal))

    @property
    def root(self) -> str:
        return self.mz.settings.warehouse

    def values(self, partition: int = 0) -> list[bytes | None]:
        """All that counts."""
        return read_values(self.store, self.root, partition)

    def texts(self, partition: int = 0) -> list[str]:
        return [(value or b"").decode() for value in self.values(partition)]

    @property
    def env(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("MZSHARE_")},
            "MZSHARE_HOME": str(self.folder),
            "MZSHARE_CATALOG": self.url,
            "MZSHARE_LEASE_SECONDS": str(LEASE_SECONDS),
            **({"MZSHARE_WAREHOUSE": self.warehouse} if self.warehouse else {}),
        }

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``mzshare push inbox …`` in this process, which a file is enough for: a new one takes long to start."""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, self.env), redirect_stdout(out), redirect_stderr(err):
            code = run(["push", "inbox", *words])
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    def start(self, *words: str, crash: str | None = None) -> subprocess.Popen[str]:
        """``mzshare push inbox …`` in a process of its own. :param crash: where it dies, or is held."""
        env = {**self.env, VARIABLE: crash} if crash else self.env
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", "push", "inbox", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, *words: str, stdin: str = "", crash: str | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, crash=crash)
        out, err = process.communicate(stdin, timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def writer(self, store: JournalStore | None = None, *, limits: Limits = LIMITS) -> JournalWriter:
        """Below what users have, with a store that does as it is told."""
        Path(self.root).mkdir(parents=True, exist_ok=True)
        return open_writer(store or self.store, self.root, limits=limits)

    def taken_over(self, partition: int = 0) -> Holder:
        """Somebody else takes the lease, whoever has it: its holder is a zombie from now on."""
        owned = self.store.partition(partition)
        while True:
            try:
                return owned.claim(JobId("push-b"), stood_still=owned.lease())
            except LeaseTaken:
                continue  # It has beaten in between.

    def wait_free(self, partition: int = 0) -> None:
        wait_until(lambda: self.store.partition(partition).lease().job_id is None, 30, "the partition to be free")
