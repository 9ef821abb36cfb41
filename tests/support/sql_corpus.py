"""The golden corpus: statements with the exact print or the exact error of each, in files by subject."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "unit" / "control" / "sql" / "corpus"


@dataclass(frozen=True)
class Case:
    file: str
    sql: str
    printed: str | None = None
    error: str | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.sql[:60]}"


def _read(path: Path) -> list[Case]:
    _, *blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    cases = []
    for block in blocks:
        sql, printed_mark, printed = block.partition("\n--> ")
        if printed_mark:
            cases.append(Case(path.stem, sql, printed=printed))
            continue
        sql, error_mark, error = block.partition("\n--! ")
        assert error_mark, block
        cases.append(Case(path.stem, sql, error=error))
    return cases


CASES = [case for path in sorted(FOLDER.glob("*.sql")) for case in _read(path)]
GOOD = [case for case in CASES if case.printed is not None]
BAD = [case for case in CASES if case.error is not None]
STATEMENTS = [case.sql for case in CASES]
