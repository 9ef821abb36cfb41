"""How much memory the indexes of a process may take together, and how much of it each of them has."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping

MIB = 1 << 20


def fits(limit: int, taken: Mapping[Hashable, int], owner: Hashable, size: int) -> bool:
    """Whether ``owner`` may have ``size`` bytes in all. Giving back is always possible."""
    others = sum(bytes_ for one, bytes_ in taken.items() if one != owner)
    return size <= taken.get(owner, 0) or others + size <= limit


class IndexMemory:
    """Any thread may use it. :param limit: in bytes; None: there is none."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._taken: dict[Hashable, int] = {}
        self._guard = threading.Lock()

    @property
    def taken(self) -> int:
        with self._guard:
            return sum(self._taken.values())

    def share(self) -> Share:
        """For one index."""
        return Share(self)

    def takes(self, owner: Hashable, size: int) -> bool:
        with self._guard:
            if self._limit is not None and not fits(self._limit, self._taken, owner, size):
                return False
            if size:
                self._taken[owner] = size
            else:
                self._taken.pop(owner, None)
            return True


class Share:
    """What one index has of it."""

    def __init__(self, memory: IndexMemory) -> None:
        self._memory = memory

    def takes(self, size: int) -> bool:
        """Have ``size`` bytes in all from now on. False, and nothing changes, where there is no room for so many."""
        return self._memory.takes(self, size)
