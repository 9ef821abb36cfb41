"""A source that is pushed into, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.support.inbox import Inbox


@pytest.fixture
def opened(catalog_url: str, tmp_path: Path) -> Iterator[Callable[..., Inbox]]:
    with ExitStack() as closes:
        yield lambda **more: closes.enter_context(closing(Inbox(tmp_path / "home", catalog_url, **more)))


@pytest.fixture
def inbox(opened: Callable[..., Inbox]) -> Inbox:
    return opened()
