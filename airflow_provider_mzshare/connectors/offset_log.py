"""Spark's own log of where batches end, ``<checkpoint>/offsets/<batch>``: version, metadata, a line per source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def logged_end(checkpoint: Path, batch_id: int) -> Any:
    """Where a batch of a query of one source ends, in the words of its source. Written before the batch runs."""
    return source_line((checkpoint / "offsets" / str(batch_id)).read_text())


def source_line(text: str) -> Any:
    lines = text.strip().splitlines()
    if len(lines) != 3 or lines[0] != "v1":
        raise ValueError(f"not an offset log of one source: {len(lines)} lines")
    return json.loads(lines[2])
