"""Pushes into a warehouse on an object store: an object for each group, and whatever answer of its gets lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.inbox import Inbox
from tests.support.relay import relay
from tests.support.s3 import S3Server


def test_what_is_pushed_into_an_object_store_is_there_once(opened: Callable[..., Inbox], s3: S3Server) -> None:
    inbox = opened(warehouse=s3.new_root())
    with inbox.mz.pusher("inbox") as pusher, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: pusher.push([f"{n}", f"{n}+"]), range(40)))
    assert sorted(inbox.texts()) == sorted(f"{n}{end}" for n in range(40) for end in ("", "+"))
    assert inbox.mz.push("inbox", ["a"], batch="b").repeated == 0
    assert inbox.mz.push("inbox", ["a"], batch="b").repeated == 1
    assert inbox.texts()[80:] == ["a"]


def test_a_lost_answer_of_an_object_store_doubles_nothing(
    opened: Callable[..., Inbox], s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with relay(s3.port) as lossy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", lossy.endpoint)
        inbox = opened(warehouse=s3.new_root())
        with inbox.mz.pusher("inbox") as pusher:
            pusher.push(["a"])
            for text in ("b", "c"):
                lossy.lose("PUT", "answer", ending=".journal")
                pusher.push([text])
        assert inbox.texts() == ["a", "b", "c"]
        assert lossy.seen("PUT", "00000001.journal") >= 1
