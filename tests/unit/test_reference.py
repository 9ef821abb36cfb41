"""The tables of options in the reference are those of the options themselves."""

from __future__ import annotations

from tools.reference import PAGE, written


def test_the_page_is_as_the_options_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "python -m tools.reference"
