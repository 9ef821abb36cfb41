"""The page that says where a change goes names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_mzshare"
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
CHANGES = re.findall(r"^\| ([^|]+) \| (.*`.*) \|$", PAGE, re.MULTILINE)
PATH = re.compile(r"`([\w./-]+(?:/|[.]py|[.]md))`")


def test_there_are_enough_of_them() -> None:
    assert len([change for change, _ in CHANGES if change not in ("format", "connector", "envelope", "launcher")]) >= 30


@pytest.mark.parametrize(("change", "where"), CHANGES, ids=[change for change, _ in CHANGES])
def test_what_a_change_touches_is_there(change: str, where: str) -> None:
    paths = PATH.findall(where)
    assert paths, "it names no file"
    beside = (PACKAGE / paths[0]).parent
    for path in paths:
        places = (ROOT / path, PACKAGE / path, beside / path)
        assert any(place.exists() for place in places), f"{change}: {path} is not there"
