"""Identifies this machine, and says how much it has room for. The limits of a container count."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import psutil

MIB, GIB = 1 << 20, 1 << 30
APP_GIB = 2
"""The memory of a driver with its Python workers, unless its settings say otherwise."""
INDEX_PART = 8
"""One app's indexes of keys may take this part of the memory: several apps may run beside other things."""
_BOOT, _PIDS = Path("/proc/sys/kernel/random/boot_id"), "/proc/self/ns/pid"
_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@cache
def machine_identity() -> str | None:
    """One boot of one machine, as seen from this container: among processes that say the same, a pid means the same.

    None where the system does not tell.
    """
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()}/{os.readlink(_PIDS)}"
    except OSError:
        return None


def default_backfills(cores: int | None = None, memory: int | None = None) -> int:
    """How many backfills may run at once: each takes half of the cores at the lowest priority, and an app's memory.

    Two where there is memory for them: one that takes long, or is paused, must not keep all others from arriving.
    """
    by_cores = max(2, (cores or usable_cores()) // 2)
    return max(1, min(by_cores, (memory or usable_memory()) // (APP_GIB * GIB)))


def default_index_mb(memory: int | None = None) -> int:
    """How much memory the indexes of one app may take."""
    return (memory or usable_memory()) // INDEX_PART // MIB


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_memory() -> int:
    return min([int(psutil.virtual_memory().total), *_container_limits()])


def _container_limits() -> list[int]:
    limits = []
    for path in _CONTAINER:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return limits
