"""Writes down, for the process that plans a stream, what is announced of a journal: it has no catalog to ask."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import MzShareError

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
BATCHES_AHEAD = 4
"""The file tells of so many batches after the one that was seen last: a long history must not be written down whole
each time. A stream is at most one batch further than what was seen of it."""
PAGE = 256
"""Segments asked for at once."""

Look = Callable[[Position], Mapping[str, Any]]
"""What is announced from a position on, so far as the file has to tell of it; None of it is bytes."""


class Announced:
    """A file, and the thread that keeps it up to date until ``close``.

    :param start: where the stream begins.
    """

    def __init__(self, look: Look, file: Path, start: Position) -> None:
        self.file = file
        self._look_up, self._low = look, start
        self._written = ""
        self._closed = threading.Event()
        self.look()
        self._thread = threading.Thread(target=self._run, name="mzshare-announced", daemon=True)
        self._thread.start()

    def seen(self, lower: Position) -> None:
        """A batch begins here: what is before it is not asked for again."""
        self._low = lower

    def look(self) -> None:
        text = json.dumps(self._look_up(self._low), separators=(",", ":"))
        if text != self._written:
            fresh = self.file.with_suffix(".new")
            fresh.write_text(text)
            os.replace(fresh, self.file)
            self._written = text

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            try:
                self.look()
            except (MzShareError, OSError) as error:
                log.warning("what is announced cannot be looked up: %s", error)
