"""The page about pushing: its statements and its programs are run as they stand there."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.inbox import Inbox
from tests.support.reading_page import REFERENCE, examples, run


def test_the_page_does_what_it_says(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in inbox.env.items():
        monkeypatch.setenv(name, value)
    page = (REFERENCE / "journals.md").read_text()
    inbox.mz.sql("DROP SOURCE inbox")
    for statements in re.findall(r"^```sql\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        inbox.mz.sql(statements)
    once, often = examples("Ways to push", "journals.md")
    for _ in range(2):
        run(once)
    answers = run(often)["answers"]
    assert sum(answer.messages for answer in answers) == 97
    assert sorted(json.loads(text)["id"] for text in inbox.texts()) == list(range(1, 100))
