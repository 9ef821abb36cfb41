"""URLs as people may see them: nothing of who logs in, however badly one is written. Pure."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[a-z][a-z0-9+]*")
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[\w.\-]*)(:[0-9]+)?"
_PLACE = re.compile(rf"{_HOST}(,{_HOST})*(/[\w.\-/+]*)?")
FILE_SCHEMES = ("sqlite", "file")
"""After these schemes everything is the name of a file."""


def shown_url(text: str) -> str:
    """Where a URL leads. What stands before the last ``@`` is left out, and all of it where that cannot be told.

    A password may hold any character that its author forgot to escape, so nothing is concluded from one that could be
    part of it.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        return "a text without ://"
    if scheme in FILE_SCHEMES:
        return text
    user, at, place = rest.rpartition("@")
    place = place.partition("?")[0]
    if "?" in user or not _PLACE.fullmatch(place):
        # With a question mark before it, the @ may be one of the query, and what follows a part of a password.
        return f"{scheme}://…"
    return f"{scheme}://…@{place}" if at else f"{scheme}://{place}"
