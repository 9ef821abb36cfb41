"""The first look at a script: limits, quotes and comments that never end, comments blanked out; it knows no grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from airflow_provider_mzshare.errors import StatementError

MAX_SCRIPT_BYTES = 1 << 20
MAX_STATEMENTS = 10_000
MAX_DEPTH = 64
_SHOWN = 40

_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MARK = re.compile(r"""['"()\[\];{}`\\]|--|/\*""")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_EMPTY = re.compile(r"[;\s]+")
_LINE_END = re.compile(r"[\r\n]|\Z")
_NOT_LINE_END = re.compile(r"[^\r\n]")


def shown(text: str) -> str:
    """A user's text as it may stand in a message: one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def refuse(text: str, offset: int, message: str) -> NoReturn:
    line, column = position(text, offset)
    raise StatementError(message, line=line, column=column)


def check_text(text: str) -> None:
    """Raise ValueError for a character that no statement may have."""
    if match := _FORBIDDEN.search(text):
        raise ValueError(_forbidden(match[0]))


def _forbidden(character: str) -> str:
    return f"the character U+{ord(character):04X} is not allowed, not even in quotes"


def scan(text: str) -> str:
    """The same text with each comment replaced by blanks, so that positions stay the same. Raises StatementError.

    sqlglot never sees a comment, because it accepts one that is not closed.
    """
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MAX_SCRIPT_BYTES:
        raise StatementError(f"the script is {size} bytes long, the limit is {MAX_SCRIPT_BYTES}")
    if match := _FORBIDDEN.search(text):
        refuse(text, match.start(), _forbidden(match[0]))
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    return _Scan(text).run()


@dataclass
class _Scan:
    text: str
    statements: int = 0
    depth: int = 0
    inside: bool = False
    pieces: list[str] = field(default_factory=list)

    def run(self) -> str:
        at = 0
        while match := _MARK.search(self.text, at):
            self._content(at, match.start())
            at = self._mark(match[0], match.start())
        self._content(at, len(self.text))
        return "".join(self.pieces)

    def _content(self, start: int, end: int) -> None:
        """Copy this part of the text. Its first character that is not blank begins a statement."""
        piece = self.text[start:end]
        self.pieces.append(piece)
        if self.inside or not (stripped := piece.lstrip()):
            return
        self.inside = True
        self.statements += 1
        if self.statements > MAX_STATEMENTS:
            refuse(self.text, end - len(stripped), f"the script has more than {MAX_STATEMENTS} statements")

    def _mark(self, mark: str, start: int) -> int:
        """Handle a quote, a comment, a bracket or a semicolon. Returns the position to continue at."""
        if mark in ("--", "/*"):
            end = self._comment_end(mark, start)
            self.pieces.append(_NOT_LINE_END.sub(" ", self.text[start:end]))
            return end
        if mark == ";":
            return self._end(start)
        end = self._quoted_end(mark, start) if mark in "'\"" else start + 1
        if mark in "{}`\\":
            refuse(self.text, start, f"unexpected character {mark}")
        if mark in "([":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                refuse(self.text, start, f"brackets are nested more than {MAX_DEPTH} deep")
        if mark in ")]":
            self.depth = max(0, self.depth - 1)
        self._content(start, end)
        return end

    def _end(self, start: int) -> int:
        """End a statement. Empty statements after it become blanks, because parsing each of them would take time."""
        rest = _EMPTY.match(self.text, start + 1)
        end = rest.end() if rest else start + 1
        self.pieces.append(";" if self.inside else " ")
        self.pieces.append(self.text[start + 1 : end].replace(";", " "))
        self.inside, self.depth = False, 0
        return end

    def _quoted_end(self, mark: str, start: int) -> int:
        at = start + 1
        while (end := self.text.find(mark, at)) >= 0:
            if self.text[end + 1 : end + 2] != mark:
                return end + 1
            at = end + 2
        what = "string" if mark == "'" else "quoted name"
        refuse(self.text, start, f"this {what} never ends: expected a closing {mark}")

    def _comment_end(self, mark: str, start: int) -> int:
        if mark == "--":
            end = _LINE_END.search(self.text, start)
            return end.start() if end else len(self.text)
        at, depth = start + 2, 1
        while match := _COMMENT_MARK.search(self.text, at):
            depth += 1 if match[0] == "/*" else -1
            at = match.end()
            if not depth:
                return at
        refuse(self.text, start, "this comment never ends: expected */")
