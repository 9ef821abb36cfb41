"""Where collections are in a warehouse. Imports nothing that opens them, for modules that only need the path."""

from __future__ import annotations


def collection_uri(root: str, path: str) -> str:
    """Below the warehouse ``root``, a local path or a URI."""
    return f"{root.rstrip('/')}/{path}"
