"""The README's code blocks as they are written, and a shell that runs its commands one after the other."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).parents[2] / "README.md"

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"\s+# .*$")


def blocks(language: str, path: Path = README) -> list[str]:
    """Those of one language, in order; commands have none."""
    return [found["text"] for found in _BLOCK.finditer(path.read_text()) if found["language"] == language]


def commands(path: Path = README) -> Iterator[str]:
    """One per line, without the comment behind it."""
    for block in blocks("", path):
        for line in block.splitlines():
            if line.strip():
                yield _COMMENT.sub("", line)


class Ran(NamedTuple):
    command: str
    code: int
    out: str
    seconds: float


@dataclass
class Shell:
    """What is exported stays, as in a user's shell. Output and errors are one text, as on a terminal."""

    folder: Path
    env: Mapping[str, str]
    stated: Mapping[str, str] = field(default_factory=dict)
    """What the README states for an example, and what it is here."""

    def run(self, command: str, timeout: float = 300) -> Ran:
        for written, here in self.stated.items():
            command = command.replace(written, here)
        after = self.folder / ".environment"
        script = f"{command}\ncode=$?\nenv -0 > {after}\nexit $code"
        began = time.monotonic()
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=dict(self.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
            check=False,
        )
        self.env = dict(word.split("=", 1) for word in after.read_text().split("\0") if "=" in word)
        return Ran(command, ran.returncode, ran.stdout, time.monotonic() - began)
