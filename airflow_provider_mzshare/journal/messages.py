"""Messages of a journal, as Arrow has them."""

from __future__ import annotations

import pyarrow as pa

MESSAGES = pa.schema(
    [
        pa.field("position", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
    ]
)
"""A message's offset is that of its block's first message, and its row. ``position``: the upstream's own, if it has
any. All may be NULL."""
