"""The examples of the page about reading tables with other tools, each as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reading.md"
NOT_IN_THE_LOCK = {
    "import duckdb": "mzshare does not need DuckDB",
    "import polars": "mzshare does not need Polars",
}
"""Lines that mark an example which is not run here, and why."""


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def why_not(example: str) -> str | None:
    return next((why for line, why in NOT_IN_THE_LOCK.items() if line in example), None)
