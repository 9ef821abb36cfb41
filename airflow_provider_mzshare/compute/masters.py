"""How much of a machine an app may take: a rule on Spark masters, as text."""

from __future__ import annotations

import os
import re

_LOCAL = re.compile(r"local\[(\*|[0-9]+)(,[0-9]+)?\]")


def backfill_master(master: str, *, cores: int | None = None) -> str:
    """Half of a single machine's cores, so that the live tables keep their pace; a cluster shares by its own rules.

    :param cores: of this machine, for ``local[*]``.
    """
    found = _LOCAL.fullmatch(master)
    if found is None:
        return master
    all_cores = cores or os.cpu_count() or 1
    threads = all_cores if found[1] == "*" else int(found[1])
    return f"local[{max(1, threads // 2)}{found[2] or ''}]"
