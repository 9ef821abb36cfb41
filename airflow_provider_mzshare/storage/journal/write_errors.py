"""Errors of who writes to a journal: facts in, what counts and what does not out."""

from __future__ import annotations

import shlex

from airflow_provider_mzshare.errors import TerminalError, TransientError
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of

_WORDS = {"full": "has no free space", "read_only": "is read-only", "away": "does not answer", None: "fails"}


class NotWritten(TransientError):
    """The storage did not take the messages, or not durably. None of them counts.

    :param root: the warehouse. :param then: what to do after that.
    """

    def __init__(self, root: str, error: OSError, *, then: str = "push again") -> None:
        self.root, self.fault = root, fault_of(error)
        path = local_path(root)
        look = (
            f"free some space there (df -h {shlex.quote(path)})" if self.fault == "full" and path else "mzshare doctor"
        )
        super().__init__(
            f"the warehouse {root} {_WORDS[self.fault]}, and takes no messages: {error}",
            hint=f"{look}; then {then}",
        )


class AnswerMissing(TransientError):
    """The catalog was told, and has not answered until the writer had to end: the messages count, or they do not."""

    def __init__(self, partition: int, first: int, end: int, error: Exception) -> None:
        self.partition, self.first, self.end = partition, first, end
        super().__init__(
            f"it is not known whether messages {first} to {end} of partition {partition} were taken: {error}",
            hint="push them again under the same id of a batch; without one they may be taken twice",
        )


class PreviousNotTaken(TransientError):
    """Messages that were to follow others, which were not taken."""


class WriterClosed(TerminalError):
    """Somebody pushes to a writer that was closed."""


class BatchTooLarge(TerminalError):
    """The messages of a batch are announced at once, so they must fit into one segment."""

    def __init__(self, batch: str, weight: int, limit: int) -> None:
        self.batch, self.weight, self.limit = batch, weight, limit
        super().__init__(f"batch {batch!r} has {weight} bytes, and may have {limit}", hint="an id for each part of it")
