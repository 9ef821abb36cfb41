"""The comparison with what users would run instead still runs, and every side has every record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = (20_000,)
SIDES = ("ours", "plain", "foreach", "queries")


@pytest.mark.full(seconds=100)
@pytest.mark.timeout(900)
def test_every_side_writes_every_record_and_ours_reads_the_topic_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.perf.bench_fanout", "--tables", "2", "--json", str(tmp_path / "runs")]
    command += ["--records", ",".join(map(str, RECORDS)), "--sides", ",".join(SIDES)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stderr[-3000:]
    runs = {(each["side"], each["records"]): each for each in json.loads((tmp_path / "runs").read_text())}
    assert len(runs) == len(SIDES) * len(RECORDS)
    for records in RECORDS:
        assert all(runs["ours", records]["parts"].values()), "driver, JVM and workers are counted"
        least = records * 190 / 1e6
        sent = {side: runs[side, records]["sent_mb"] for side in SIDES}
        assert least < sent["plain"] < 1.3 * least
        assert sent["ours"] < 1.05 * sent["plain"], "ours reads the topic once"
        assert sent["queries"] > 1.8 * sent["plain"], "two queries read it twice"


@pytest.mark.full(seconds=200)
@pytest.mark.timeout(1200)
def test_every_side_keeps_a_table_by_its_keys(tmp_path: Path) -> None:
    """Each run compares the table with what it must hold; the figures of so few keys say nothing."""
    command = [sys.executable, "-m", "tests.perf.bench_keyed", "--keys", "2000", "--changes", "200", "--ticks", "2"]
    command += ["--slow-ticks", "2", "--json", str(tmp_path / "runs")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stderr[-3000:]
    runs = {(each["part"], each["side"]): each for each in json.loads((tmp_path / "runs").read_text())}
    sides = ("ours", "ours, merged", "MERGE", "MERGE, vectors", "delta-rs")
    assert set(runs) == {*(("after", side) for side in sides[:2]), *(("whole", side) for side in sides)}
