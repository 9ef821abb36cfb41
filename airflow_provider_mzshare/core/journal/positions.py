"""Which messages of a journal lie in a range of the upstream's own positions, as its segments say, without their bytes.

An epoch is one connection to the upstream. It is told whole transactions in the order of their positions, so positions
never fall within an epoch, and what it announced beyond its last boundary is the beginning of one transaction. The next
epoch begins at the last boundary, and is told that transaction once more. So when there is a later epoch, what an epoch
announced at or beyond its last boundary is abandoned: it never counts. Without a later one nobody asks for it, because
every range ends at a boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_provider_mzshare.core.journal.state import Segment


@dataclass(frozen=True)
class Slice:
    """Of a segment, the messages with positions of ``[lower, upper)``."""

    segment: Segment
    lower: int
    upper: int


def slices(segments: Sequence[Segment], lower: int, upper: int) -> list[Slice]:
    """Where the messages of ``[lower, upper)`` are, in order. ``upper`` is at most the last boundary.

    :param segments: of one partition, in order and without gaps: from the last one that begins below ``lower`` to the
        first one that begins at or beyond ``upper``, as far as there are such.
    """
    ends = _ends(segments)
    found: list[Slice] = []
    for segment in segments:
        if segment.low is None:
            continue
        below = min(upper, ends.get(segment.epoch, upper))
        if max(lower, segment.low) < below:
            found.append(Slice(segment, lower, below))
    return found


def _ends(segments: Sequence[Segment]) -> Mapping[int, int]:
    """Up to where each epoch counts, of those that a later one follows.

    Every segment carries the last boundary that was announced before it, so an epoch's last segment has the epoch's.
    """
    return {one.epoch: one.boundary or 0 for one, after in pairwise(segments) if one.epoch != after.epoch}
