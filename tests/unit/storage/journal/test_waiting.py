"""Answers are told once to all who wait, and the line gives those who come back together the moment to do so."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_mzshare.storage.journal import waiting
from airflow_provider_mzshare.storage.journal.rows import Rows
from airflow_provider_mzshare.storage.journal.waiting import Acknowledged, Answer, Waiting, WaitingLine
from airflow_provider_mzshare.storage.journal.write_errors import WriterClosed

SECONDS = 20
LIMIT = 1_000


def one(weight: int = 1) -> Waiting:
    return Waiting(Rows([(None, b"v", None, None)], 1), weight)


def test_an_answer_reaches_all_who_wait_for_it_and_who_asks_later() -> None:
    answer, found = Answer(), Acknowledged(0, 1, 2)
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(answer.result, SECONDS) for _ in range(5)]
        assert not answer.done()
        answer.set_result(found)
        assert [each.result(SECONDS) for each in asked] == [found] * 5
    assert answer.done()
    assert (answer.result(), answer.exception()) == (found, None)


def test_an_error_is_raised_and_told() -> None:
    answer, error = Answer(), WriterClosed("closed")
    answer.set_exception(error)
    assert answer.exception() is error
    for _ in range(2):
        with pytest.raises(WriterClosed) as raised:
            answer.result()
        assert raised.value is error


def test_who_does_not_want_to_wait_longer_is_told_so() -> None:
    answer = Answer()
    with pytest.raises(TimeoutError):
        answer.result(0.01)
    answer.set_result(Acknowledged(0, 0, 1))
    assert answer.result(0).messages == 1


def test_those_who_were_acknowledged_together_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_MOMENT", SECONDS)
    line = WaitingLine(LIMIT)
    for _ in range(3):
        line.put(one())
    line.let_go(line.take(LIMIT))
    line.put(one())
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(line.take, LIMIT)
        line.put(one())
        with pytest.raises(TimeoutError):
            taking.result(0.05)
        line.put(one())
        assert len(taking.result(SECONDS)) == 3


def test_nobody_is_waited_for_who_does_not_come() -> None:
    line = WaitingLine(LIMIT)
    for _ in range(3):
        line.put(one())
    line.let_go(line.take(LIMIT))
    line.put(one())
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(line.take, LIMIT).result(SECONDS)) == 1


def test_one_who_is_alone_and_a_full_group_wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_MOMENT", SECONDS)
    line, began = WaitingLine(LIMIT), time.monotonic()
    for _ in range(3):
        line.put(one())
        taken = line.take(LIMIT)
        line.let_go(taken)
    assert len(taken) == 1
    for _ in range(3):
        line.put(one(60))
    line.let_go(line.take(100))
    assert len(line.take(100)) == 1
    assert time.monotonic() - began < SECONDS
