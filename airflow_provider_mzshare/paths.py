"""Which characters the folders of ours may have in their paths: what a library cannot take is refused by name. Pure."""

from __future__ import annotations

import re

_SPARK = re.compile(r"[\x00-\x1f\x7f#,\\\U00010000-\U0010ffff]")
"""Spark takes lists of files apart at commas, and what follows a ``#`` for another name of the file. Java spoils
characters beyond U+FFFF, such as emoji, in the options that it is started with."""
_DELTA = re.compile(r"[\x00-\x1f\x7f\\\[\]<>^|]|%[0-9A-Fa-f]{2}")
"""delta-rs decodes an escape, and so uses another folder; the other characters it does not accept at all."""


def bad_for_spark(path: str) -> str | None:
    """What Spark cannot take in the path of its jars, or of a folder it works in; None where all is well."""
    return _found(_SPARK, path)


def bad_for_tables(path: str) -> str | None:
    """The same of the folder of a warehouse."""
    return _found(_DELTA, path)


def _found(bad: re.Pattern[str], path: str) -> str | None:
    found = bad.search(path)
    return found[0] if found else None
