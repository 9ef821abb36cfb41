"""What is pushed into a source is in its tables, through real apps: live, late, by keys, and whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.client import MzShare, connect
from airflow_provider_mzshare.storage.crashpoints import BACKFILL_LABELS, LABELS
from tests.support.waiting import wait_until

SOURCE = (
    "CREATE SOURCE inbox FROM JOURNAL (PARTITIONS 2) WITH (TRIGGER INTERVAL '200ms', IDLE TICK INTERVAL '500ms', "
    "MAX RECORDS PER TICK 700)"
)
BY_SPARK = f"{SOURCE[:-1]}, DRIVER READS false)"
BOTH_WAYS = pytest.mark.parametrize("source", [SOURCE, BY_SPARK], ids=["driver", "spark"])
TABLE = "CREATE TABLE {} (id bigint, who text) FROM SOURCE inbox FORMAT JSON"
KEYED = (
    "CREATE TABLE {} (id bigint, who text) FROM SOURCE inbox KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS k "
    "ENVELOPE UPSERT"
)
KEYS = 40


class Home:
    """A home folder as a user has it: commands in processes of their own, and Python."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "MZSHARE_HOME": str(folder), "MZSHARE_JARS": str(jars)}
        self.mz: MzShare = connect(home=folder)
        self.sent = 0
        self.newest: dict[str, int] = {}
        """The last record of each key."""

    def command(self, *words: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("mzshare")), *words]
        ran = subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True, timeout=180, check=False)
        assert not check or ran.returncode == 0, ran.stderr + self.logs()
        return ran

    def push(self, count: int, *, times: int = 1) -> None:
        """So many records, of keys that keep to one partition; sent again under the same id."""
        numbers = range(self.sent, self.sent + count)
        for partition in range(2):
            mine = [number for number in numbers if number % KEYS % 2 == partition]
            records = [{"key": f"k{n % KEYS}", "value": json.dumps({"id": n, "who": f"w{n}"})} for n in mine]
            for _ in range(times):
                self.mz.push("inbox", records, batch=f"{self.sent}-{partition}", partition=partition)
        self.newest.update({f"k{number % KEYS}": number for number in numbers})
        self.sent += count

    def ids(self, name: str, **when: Any) -> Counter[int]:
        return Counter(self.mz.read(name, **when).column("id").to_pylist())

    def pid(self) -> int:
        (source,) = self.mz.status("inbox").sources
        assert source.pid is not None
        return source.pid

    def kill(self) -> None:
        """The app, with all that it has started."""
        os.killpg(os.getpgid(self.pid()), signal.SIGKILL)

    def logs(self) -> str:
        return "\n\n".join(path.read_text()[-4_000:] for path in self.folder.glob("jobs/*/*/log"))

    def check(self, names: Mapping[str, bool]) -> None:
        """:param names: tables, and whether they are kept by their keys."""
        for name, is_keyed in names.items():
            self.mz.wait(name, until="caught-up", timeout=120)
            wanted = Counter(self.newest.values()) if is_keyed else Counter(range(self.sent))
            assert self.ids(name) == wanted, name
            assert self.mz.read(name, errors=True).num_rows == 0
            assert self.mz.verify(name, everything=True).verdict == "exact"


@pytest.fixture
def home(tmp_path: Path, jars: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", jars)
    try:
        yield made
    finally:
        made.command("stop", "inbox", check=False)
        made.mz.close()


def test_what_is_pushed_is_in_the_tables_whatever_is_killed(home: Home) -> None:
    home.command("sql", f"{SOURCE}; {TABLE.format('a')}; {KEYED.format('k')}")
    home.push(500, times=2)
    home.command("start", "inbox")
    home.check({"a": False, "k": True})
    home.kill()
    home.push(1_500)
    home.command("sql", f"{TABLE.format('late')}; {KEYED.format('late_k')}")
    home.command("start", "inbox")
    home.mz.wait("late", timeout=120, start=True)
    home.mz.wait("late_k", timeout=120, start=True)
    home.push(300, times=2)
    home.check({"a": False, "k": True, "late": False, "late_k": True})
    assert not Counter(home.ids("a"))[home.sent], "nothing that was not pushed"


@BOTH_WAYS
@pytest.mark.parametrize("label", ["files_written"])
def test_an_app_that_is_killed_goes_on_where_it_was(home: Home, label: str, source: str) -> None:
    killed_at(home, label, source)


@BOTH_WAYS
@pytest.mark.full(seconds=200)
@pytest.mark.parametrize("label", LABELS)
def test_an_app_goes_on_from_every_label(home: Home, label: str, source: str) -> None:
    killed_at(home, label, source)


def killed_at(home: Home, label: str, source: str) -> None:
    home.command("sql", f"{source}; {TABLE.format('a')}; {KEYED.format('k')}")
    home.push(2_000)
    home.command("start", "inbox", MZSHARE_CRASH=f"{label}@2")
    wait_until(lambda: home.mz.status("inbox").sources[0].health in ("lost", "failed", "stopped"), 120, "the death")
    home.push(100)
    home.command("start", "inbox")
    home.check({"a": False, "k": True})


@pytest.mark.full(seconds=300)
@pytest.mark.parametrize("label", BACKFILL_LABELS)
def test_a_backfill_goes_on_from_every_label(home: Home, label: str) -> None:
    home.command("sql", f"{SOURCE}; {TABLE.format('a')}")
    home.push(2_000)
    home.command("start", "inbox")
    home.check({"a": False})
    home.command("sql", f"{TABLE.format('late')}; {KEYED.format('late_k')}")
    home.command("wait", "late", "--timeout", "60", check=False, MZSHARE_CRASH=label)
    home.push(100)
    for name in ("late", "late_k"):
        home.mz.wait(name, timeout=180, start=True)
    home.check({"a": False, "late": False, "late_k": True})
