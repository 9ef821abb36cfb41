"""Which changes a snapshot held already: those of the transactions that it saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Seen:
    """A snapshot of Postgres, whose numbers of transactions have 64 bits. In the stream they have the lower 32.

    :param h: the place from which on nothing can have been seen.
    :param xip: transactions that had begun before ``xmax`` and were not seen.
    """

    h: int
    xmin: int
    xmax: int
    xip: tuple[int, ...]

    @classmethod
    def of(cls, visible: tuple[int, str]) -> Seen:
        """:param visible: the place, and the snapshot as Postgres writes it: ``xmin:xmax:xip,xip``."""
        return _parsed(*visible)

    def holds(self, places: pa.Array, xids: pa.Array) -> npt.NDArray[np.bool_]:
        """Of each change, whether the snapshot held it. A row of a snapshot has no transaction, and is none."""
        told = np.asarray(xids.is_valid())
        full = self.full(np.asarray(xids.fill_null(0)))
        seen: npt.NDArray[np.bool_] = full < self.xmax
        if self.xip:
            seen &= ~np.isin(full, np.array(self.xip, np.int64))
        seen |= full < self.xmin
        seen &= told & (np.asarray(places) < self.h)
        return seen

    def full(self, xids: Numbers) -> Numbers:
        """All 64 bits: of those numbers that end so, the one that is nearest to ``xmax``."""
        apart = (xids - self.xmax).astype(np.uint32).view(np.int32)
        return self.xmax + apart.astype(np.int64)


@lru_cache(maxsize=64)
def _parsed(h: int, snapshot: str) -> Seen:
    xmin, xmax, xip = snapshot.split(":")
    return Seen(h, int(xmin), int(xmax), tuple(int(each) for each in xip.split(",") if each))
