"""The examples of the page about reading tables with other tools, each as it stands there, and their results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = REFERENCE / "reading.md"


def examples(section: str, page: str = "reading.md") -> list[str]:
    """:param section: the heading above them."""
    told = (REFERENCE / page).read_text()
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", told, re.DOTALL | re.MULTILINE)
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run(example: str, **names: Any) -> dict[str, Any]:
    """:returns: its variables afterwards."""
    exec(example, names)
    return names


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The rows of a frame of pandas, Polars or Spark, sorted: none of them promises an order."""
    if hasattr(frame, "rdd"):
        return sorted(tuple(row) for row in frame.collect())
    if hasattr(frame, "to_dicts"):
        return sorted(tuple(row.values()) for row in frame.to_dicts())
    return sorted(frame.itertuples(index=False, name=None))
