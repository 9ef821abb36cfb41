"""A real browser without a window, spoken to in the plain WebDriver protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports
from tests.support.waiting import wait_until

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1400,1100",
)  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER, SELECT_ALL, BACKSPACE = "\ue007", "\ue009a\ue000", "\ue003"


class WebDriverError(Exception):
    """What the driver refused: there is no such element, something covers it, and the like."""


class Browser:
    """One page; elements are found by XPath, and waited for."""

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, url: str) -> None:
        self._do("POST", "/url", {"url": url})

    @property
    def url(self) -> str:
        return str(self._do("GET", "/url"))

    @property
    def text(self) -> str:
        """All that can be read on the page."""
        return str(self.run("return document.body.innerText"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self._do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, xpath: str, timeout: float = 30) -> str:
        """The first element that can be seen; its id."""
        return str(wait_until(lambda: self._visible(xpath), timeout, f"{xpath} at {self.url}", every=0.5))

    def has(self, xpath: str) -> bool:
        return self._visible(xpath) is not None

    def click(self, xpath: str, timeout: float = 30) -> None:
        self._retry(lambda: self._do("POST", f"/element/{self.find(xpath, timeout)}/click", {}), f"a click on {xpath}")

    def type(self, xpath: str, text: str) -> None:
        """Replace what is in a field, as a user's keys do."""
        self.keys(xpath, SELECT_ALL + BACKSPACE + text)

    def keys(self, xpath: str, keys: str) -> None:
        self._retry(lambda: self._do("POST", f"/element/{self.find(xpath)}/value", {"text": keys}), f"keys at {xpath}")

    def wait_for_text(self, text: str, timeout: float = 30) -> None:
        wait_until(lambda: text in self.text, timeout, f"{text!r} at {self.url}", every=0.5)

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._do("GET", "/screenshot")))

    def _visible(self, xpath: str) -> str | None:
        found = self._do("POST", "/elements", {"using": "xpath", "value": xpath})
        with suppress(WebDriverError):  # It may be gone again.
            return next((e[_ELEMENT] for e in found if self._do("GET", f"/element/{e[_ELEMENT]}/displayed")), None)
        return None

    def _retry(self, action: Callable[[], Any], what: str) -> None:
        """A page that is still being drawn moves elements, covers them, or makes them anew."""

        def done() -> bool:
            try:
                action()
            except WebDriverError as error:
                problem[0] = str(error)
                return False
            return True

        problem = [""]
        try:
            wait_until(done, 15, what, every=0.3)
        except AssertionError as error:
            raise AssertionError(f"{error}: {problem[0]}") from None

    def _do(self, method: str, path: str, body: Any = None) -> Any:
        return _call(method, self._session + path, body)


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, in a folder of its own: what it listens on is a path of at most 108 characters. Ends with the block."""
    driver, chromium = _program("chromedriver"), _program("chromium")
    [port] = free_ports(1)
    server = f"http://{LOOPBACK}:{port}"
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        arguments = [*OPTIONS, f"--user-data-dir={folder}/profile"]
        wish = {"browserName": "chrome", "goog:chromeOptions": {"binary": chromium, "args": arguments}}
        env = {**os.environ, "TMPDIR": folder}
        log = Path(folder, "driver.log")
        with ServerProcess("chromedriver", [driver, f"--port={port}"], log=log, env=env) as process:
            process.wait_until(lambda: _ready(server), 30)
            made = _call("POST", f"{server}/session", {"capabilities": {"alwaysMatch": wish}})
            session = f"{server}/session/{made['sessionId']}"
            try:
                yield Browser(session)
            finally:
                _call("DELETE", session)


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} was not found: apt-get install chromium chromium-driver"
    return found


def _ready(server: str) -> bool:
    try:
        return bool(_call("GET", f"{server}/status")["ready"])
    except OSError:
        return False


def _call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except HTTPError as error:
        said = json.load(error)["value"]
        raise WebDriverError(f"{said['error']}: {said['message'].splitlines()[0]}") from None
