"""What a machine has room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.compute import machine
from airflow_provider_mzshare.compute.machine import GIB, default_backfills, default_index_mb


@pytest.mark.parametrize(
    ("cores", "gib", "wanted"),
    [(1, 1, 1), (2, 2, 1), (2, 3, 1), (2, 4, 2), (2, 64, 2), (8, 64, 4), (64, 16, 8), (64, 512, 32)],
)
def test_half_of_the_cores_and_at_least_two_as_far_as_memory_goes(cores: int, gib: int, wanted: int) -> None:
    assert default_backfills(cores, gib * GIB) == wanted


def test_the_indexes_of_an_app_may_take_an_eighth_of_the_memory() -> None:
    assert default_index_mb(16 * GIB) == 2048


def test_a_containers_own_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited, without = tmp_path / "memory.max", tmp_path / "none"
    limited.write_text(f"{3 * GIB}\n")
    without.write_text("max\n")
    monkeypatch.setattr(machine, "_CONTAINER", (limited, without, tmp_path / "nowhere"))
    assert machine.usable_memory() == 3 * GIB
    assert default_backfills(cores=64) == 1
    assert default_index_mb() == 384
    monkeypatch.setattr(machine, "_CONTAINER", (without,))
    assert machine.usable_memory() > 0
    assert default_backfills() >= 1
