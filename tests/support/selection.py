"""Which tests run, and in what order: what needs a server, what is run on both databases, and parts of a long run.

Nothing here knows what a test does; it looks at the fixtures that it asks for and at its marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SERVERS = frozenset({"kafka", "postgres", "upstream_postgres", "spark", "s3_server", "wheel_env"})
"""Fixtures that start something. ``make quick`` runs what asks for none of them."""

SERVER_FOLDERS = ("apps", "system", "packaging", "integration/embedded", "integration/kafka", "integration/launcher")
"""What stands here starts apps, brokers, Airflow or builds by itself."""

BOTH_DATABASES = ("integration/catalog", "integration/relations", "integration/test_servers.py")
"""Locks, races, revisions, the stores and the relations' SQL differ between databases, so both are always run. What
stands above the catalog is run on SQLite by ``make test``, and on Postgres too by ``make test-full``."""

ORDER = ("system", "apps", "packaging", "integration")
"""Workers get whole files, in this order: who begins with the longest waits leaves no core idle at the end."""

SECONDS = 20
"""What a long test takes unless its mark says otherwise: ``@pytest.mark.full(seconds=600)``."""


def choose(items: Sequence[pytest.Item], part: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Mark all, put those first that wait longest, and return what is to run and what another part runs."""
    for item in items:
        _mark(item)
    ordered = sorted(items, key=_rank)
    others = _of_other_parts([item for item in ordered if _is_long(item)], part)
    return [item for item in ordered if item not in others], list(others)


def _mark(item: pytest.Item) -> None:
    asked = set(getattr(item, "fixturenames", ()))
    params = item.callspec.params if hasattr(item, "callspec") else {}
    on_postgres = "postgres" in (params.get("catalog_url"), params.get("empty_url"))
    if on_postgres and not _stands_in(item, BOTH_DATABASES):
        item.add_marker(pytest.mark.full(seconds=2))
    if on_postgres or asked & SERVERS or _stands_in(item, SERVER_FOLDERS):
        item.add_marker("server")


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, folder in enumerate(ORDER) if _stands_in(item, [folder])), len(ORDER))


def _of_other_parts(long: Sequence[pytest.Item], part: str) -> set[pytest.Item]:
    """The longest goes to the part that has least so far; so parts are about equal and the same on every machine."""
    try:
        number, parts = (int(word) for word in part.split("/"))
    except ValueError:
        raise pytest.UsageError(f"--part {part}: say K/N, such as 1/4") from None
    if not 1 <= number <= parts:
        raise pytest.UsageError(f"--part {part}: parts are numbered from 1 to {parts}")
    filled: list[list[pytest.Item]] = [[] for _ in range(parts)]
    for item in sorted(long, key=lambda item: (-_seconds(item), item.nodeid)):
        min(filled, key=lambda given: sum(map(_seconds, given))).append(item)
    return {item for given in filled if given is not filled[number - 1] for item in given}


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("full") is not None


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("full")
    return float(mark.kwargs.get("seconds", SECONDS)) if mark else 0


def _stands_in(item: pytest.Item, places: Sequence[str]) -> bool:
    where = item.path.relative_to(TESTS).as_posix()
    return any(where == place or where.startswith(f"{place}/") for place in places)
