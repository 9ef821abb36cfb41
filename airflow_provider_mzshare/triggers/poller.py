"""One poller for each catalog and event loop: however many triggers wait, a catalog is asked once an interval."""

from __future__ import annotations

import asyncio
import logging
from asyncio import AbstractEventLoop, Future
from collections.abc import Mapping
from functools import partial

from airflow_provider_mzshare.control.lifecycle.converged_wait import Answer, Question, arm, look
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.triggers.catalogs import LoopCatalog, backoff

log = logging.getLogger(__name__)

_pollers: dict[tuple[AbstractEventLoop, str], Poller] = {}
"""The pollers that run. One that has ended, or that no trigger waits for, is not used by new triggers."""


async def wait_for(url: str, question: Question, interval: float) -> Answer:
    """The first answer that ends the wait. A cancelled wait leaves nothing behind."""
    poller = _pollers.get((asyncio.get_running_loop(), url)) or Poller(url)
    answer = poller.join(question, interval)
    try:
        return await answer
    finally:
        poller.leave(answer)


class Poller:
    """Runs as long as a trigger waits. Used from one event loop only.

    All tables that are waited for are looked at together, at the shortest interval of all triggers. A catalog that does
    not answer is asked again, less and less often; the triggers have a time limit of their own.
    """

    def __init__(self, url: str) -> None:
        self._key = (asyncio.get_running_loop(), url)
        self._catalog = LoopCatalog(url)
        self._waiting: dict[Future[Answer], tuple[Question, float]] = {}
        self._changed = asyncio.Event()
        self._failures = 0
        # Kept here: a loop holds its tasks weakly.
        self._task = asyncio.get_running_loop().create_task(self._poll(), name="mzshare-poller")
        self._task.add_done_callback(self._ended)
        _pollers[self._key] = self

    def join(self, question: Question, interval: float) -> Future[Answer]:
        answer: Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[answer] = (question, interval)
        self._changed.set()
        return answer

    def leave(self, answer: Future[Answer]) -> None:
        self._waiting.pop(answer, None)
        self._changed.set()
        if not self._waiting:
            self._retire()

    def _retire(self) -> None:
        if _pollers.get(self._key) is self:
            del _pollers[self._key]

    async def _poll(self) -> None:
        # Let all triggers that start now join first: they share the first look.
        await asyncio.sleep(0)
        while self._waiting:
            began = asyncio.get_running_loop().time()
            try:
                await self._look()
                self._failures = 0
            except TransientError as error:
                self._failures += 1
                log.warning("%s %d triggers wait on.", error.line, len(self._waiting))
            await self._rest(began)

    async def _look(self) -> None:
        questions = {question for question, _ in self._waiting.values()}
        answers = await self._catalog.ask(partial(look, questions=questions))
        self._tell(answers)
        # After the answers: a source that is locked for long must not delay them.
        await self._catalog.ask(partial(arm, answers=answers))

    def _tell(self, answers: Mapping[Question, Answer]) -> None:
        for waiter, (question, _) in self._waiting.items():
            answer = answers.get(question)
            if answer is not None and answer.ends and not waiter.done():
                waiter.set_result(answer)

    async def _rest(self, began: float) -> None:
        """Sleep until the next look is due. A new trigger may have a shorter interval."""
        clock = asyncio.get_running_loop().time
        while self._waiting:
            interval = min(interval for _, interval in self._waiting.values())
            left = began + backoff(interval, self._failures) - clock()
            if left <= 0:
                return
            self._changed.clear()
            waking = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((waking,), timeout=left)
            finally:
                waking.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """If the poller ends, all its waits end, because nobody else would look."""
        self._retire()
        self._catalog.close_soon()
        error = None if task.cancelled() else task.exception()
        for waiter in self._waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.cancel()
            else:
                waiter.set_exception(error)
