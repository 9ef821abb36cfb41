"""What a snapshot held is told by the lower 32 bits of transactions, also where these begin anew."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_mzshare.storage.fanout.seen import Seen

TURN = 2**32


def plainly(visible: tuple[int, str], lsn: int, xid: int | None, xmax: int) -> bool:
    """By all 64 bits, searched for."""
    if xid is None or lsn >= visible[0]:
        return False
    low, _, xip = visible[1].split(":")
    near = [turn * TURN + xid for turn in range(-1, 8) if -(2**31) <= turn * TURN + xid - xmax < 2**31]
    (full,) = near
    return full < int(low) or (full < xmax and str(full) not in xip.split(","))


@pytest.mark.parametrize("xmax", [10, 1000, 2**31, TURN - 1, TURN, TURN + 1, TURN + 5, 3 * TURN - 3, 5 * TURN + 2**31])
@pytest.mark.parametrize("seed", range(4))
def test_by_the_lower_bits_it_is_what_all_bits_say(xmax: int, seed: int) -> None:
    draw = Random(seed)
    xmin = max(3, xmax - draw.choice([0, 1, 7, 40]))
    xip = sorted(draw.sample(range(xmin, xmax), min(xmax - xmin, draw.choice([0, 1, 5]))))
    visible = (100, f"{xmin}:{xmax}:{','.join(map(str, xip))}")
    full = [*range(max(3, xmin - 20), xmax + 20), max(3, xmax - 2**31), xmax + 2**31 - 1]
    xids = [each % TURN for each in full] + [None, 7]
    lsns = [draw.choice([0, 99, 100, 101]) for _ in xids]
    found = Seen.of(visible).holds(pa.array(lsns, pa.int64()), pa.array(xids, pa.int64()))
    assert found.tolist() == [plainly(visible, lsn, xid, xmax) for lsn, xid in zip(lsns, xids, strict=True)]


def test_the_bits_that_the_stream_leaves_out_are_found() -> None:
    seen = Seen.of((1, f"{TURN - 2}:{TURN + 3}:"))
    assert seen.full(np.array([TURN - 1, 0, 2, 3, 2**31])).tolist() == [
        TURN - 1,
        TURN,
        TURN + 2,
        TURN + 3,
        TURN + 2**31,
    ]
