"""Where collections lie in a warehouse; for whoever only names them, without what opens them."""

from __future__ import annotations


def collection_uri(root: str, path: str) -> str:
    """Below the warehouse ``root``, a local path or a URI."""
    return f"{root.rstrip('/')}/{path}"
