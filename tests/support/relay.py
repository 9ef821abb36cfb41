"""A relay in front of a real HTTP server: it passes everything on, and loses what a test says.

A process of its own: delta-rs keeps Python's lock while it waits for an answer.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Literal

from airflow_provider_mzshare.embedded.process import LOOPBACK

Loss = Literal["request", "answer", "answer for an error"]
"""What is lost: the server never hears of it; the connection ends after the server has done it; or its answer is
replaced by an internal error."""

_SPAWN = multiprocessing.get_context("spawn")
_DEADLINE_S = 30


class Relay:
    """What a test says to it."""

    def __init__(self, port: int, pipe: Connection) -> None:
        self.endpoint, self._pipe = f"http://{LOOPBACK}:{port}", pipe

    def lose(self, method: str, loss: Loss, *, times: int = 1, ending: str = "") -> None:
        """Of the next ``times`` requests with this method, whose path ends so."""
        self._ask(_Rule(method, loss, times, ending))

    def seen(self, method: str, ending: str = "") -> int:
        """How many such requests have come."""
        return sum(each == method and path.endswith(ending) for each, path in self._ask(None))

    def _ask(self, question: _Rule | None) -> list[tuple[str, str]]:
        self._pipe.send(question)
        assert self._pipe.poll(_DEADLINE_S), "the relay does not answer"
        seen: list[tuple[str, str]] = self._pipe.recv()
        return seen


@dataclass
class _Rule:
    method: str
    loss: Loss
    times: int
    ending: str

    def takes(self, method: str, path: str) -> bool:
        if self.times < 1 or method != self.method or not path.endswith(self.ending):
            return False
        self.times -= 1
        return True


@contextmanager
def relay(port: int) -> Iterator[Relay]:
    """In front of a server on this port."""
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(port, there), daemon=True)
    process.start()
    try:
        assert here.poll(_DEADLINE_S), "the relay does not start"
        yield Relay(here.recv(), here)
    finally:
        process.kill()
        process.join(_DEADLINE_S)


def _serve(port: int, pipe: Connection) -> None:
    server = _Server((LOOPBACK, 0), _Handler)
    server.told = _Told(port)
    Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.server_address[1])
    with suppress(EOFError):
        while True:
            rule = pipe.recv()
            if rule is not None:
                server.told.rule = rule
            pipe.send(server.told.seen)


@dataclass
class _Told:
    behind: int
    rule: _Rule | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    told: _Told

    def handle_error(self, *args: Any) -> None:
        """A client may go away at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _relay(self) -> None:
        told, body = self.server.told, self._body()
        told.seen.append((self.command, self.path))
        loss = told.rule.loss if told.rule and told.rule.takes(self.command, self.path) else None
        if loss == "request":
            self.close_connection = True
            return
        status, headers, content = self._asked(body)
        if loss == "answer":
            self.close_connection = True
        elif loss == "answer for an error":
            self._answer(500, [], b"")
        else:
            self._answer(status, headers, content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while True:
            # With the marks of the chunks: they are passed on as they are, too.
            parts.append(line := self.rfile.readline())
            size = int(line.split(b";")[0], 16)
            parts.append(self.rfile.read(size + 2))
            if not size:
                return b"".join(parts)

    def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(LOOPBACK, self.server.told.behind)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            # The client has signed its headers, the host's name included: they are passed on as they are.
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        known = {name.lower(): value for name, value in headers}
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        length = known.get("content-length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _relay

    def log_message(self, *args: object) -> None:
        pass
