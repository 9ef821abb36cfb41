"""Which errors are faults of the storage, and so no table's failure. They are found by errno, in any library's error.

Only this module knows them. It travels with the writer, so executors return the fault itself and not a text.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Literal

Fault = Literal["full", "read_only", "away"]
"""``full``: no room or no quota is left. ``read_only``: nothing can be written. ``away``: no answer, or not mounted."""

_FAULTS: dict[int, Fault] = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EROFS: "read_only",
    errno.EIO: "away",
    errno.ESTALE: "away",
    errno.ENXIO: "away",
    errno.ENODEV: "away",
    errno.ENOTCONN: "away",
    errno.EHOSTDOWN: "away",
    errno.ETIMEDOUT: "away",
}
_JAVA_TEXTS: dict[str, Fault] = {
    "No space left on device": "full",
    "Disk quota exceeded": "full",
    "Read-only file system": "read_only",
    "Input/output error": "away",
    "Stale file handle": "away",
}
"""Java's errors have the system's text, without the number."""

_NUMBER = re.compile(r"\(os error (\d+)\)|\[errno (\d+)\]", re.IGNORECASE)
"""The number as Rust and Arrow write it into their messages."""
_SPARKS = re.compile(r"(?:java\.n?io\.[\w.]+|\bOSError)\b: ?([^\n]*)")
"""The part of Spark's long error texts that comes from Java's or a worker's own input and output."""


def fault_of(error: BaseException) -> Fault | None:
    """The fault of the storage, if this error or one of its causes shows it; otherwise None."""
    return next((fault for one in _chain(error) if (fault := _own_fault(one))), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _own_fault(error: BaseException) -> Fault | None:
    if isinstance(error, OSError):
        return _FAULTS.get(error.errno) if error.errno is not None else _numbered(str(error))
    library = type(error).__module__.partition(".")[0]
    if library in ("_internal", "deltalake"):
        return _numbered(str(error))
    if library in ("pyspark", "py4j"):
        return next((fault for said in _SPARKS.findall(str(error)) if (fault := _spoken(said))), None)
    # Texts of other libraries are not searched: they may quote a record.
    return None


def _numbered(text: str) -> Fault | None:
    for match in _NUMBER.finditer(text):
        if fault := _FAULTS.get(int(match[1] or match[2])):
            return fault
    return None


def _spoken(text: str) -> Fault | None:
    return _numbered(text) or next((fault for words, fault in _JAVA_TEXTS.items() if words in text), None)
