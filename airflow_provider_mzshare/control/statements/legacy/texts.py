"""Names inside old-style definitions, which are kept as SQL: from text to parts and back. Looks nothing up."""

from __future__ import annotations

import re
from collections.abc import Iterable

from airflow_provider_mzshare.control.sql.names import QualifiedName, fold, quote
from airflow_provider_mzshare.errors import StatementError

_PART = re.compile(r'"((?:[^"]|"")+)"|([^\s."]+)')


def parts_of(text: str) -> tuple[str, ...]:
    """``a."B".c`` as its parts; without quotes, upper case is folded."""
    parts, at = [], 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            raise StatementError(f"{text!r} is not a name; write its parts with dots between them")
        quoted, plain = found.groups()
        parts.append(fold(plain) if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise StatementError(f"{text!r} is not a name; write its parts with dots between them")
        at += 1


def sql_of(parts: Iterable[str]) -> str:
    return ".".join(quote(part) for part in parts)


def name_of(text: str, schema: str) -> QualifiedName:
    """``[schema.]name``; without one it is in ``schema``."""
    parts = parts_of(text)
    if len(parts) > 2:
        raise StatementError(f"{text!r} is not a name; write [schema.]name")
    return QualifiedName(*parts) if len(parts) == 2 else QualifiedName(schema, parts[0])
