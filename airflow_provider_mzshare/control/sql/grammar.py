"""The base of all grammars: words, names, literals, lists, options, and errors with their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql.names import RESERVED, check_name, fold, is_bare, needs_quotes
from airflow_provider_mzshare.control.sql.nodes import Option, Path
from airflow_provider_mzshare.control.sql.scanning import position, shown

INT64_MAX = 2**63 - 1
_INT64_DIGITS = len(str(INT64_MAX))
T = TypeVar("T")


def listing(words: Iterable[str], last: str = "or") -> str:
    """``a, b or c``."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def identifier(name: str, token: Token | None = None) -> exp.Identifier:
    """Quoted when it must be, however it was written, so that one name has one tree and one print."""
    node = exp.Identifier(this=name, quoted=needs_quotes(name))
    return node.update_positions(token) if token else node


class Reader(PostgresParser):
    """Helpers on top of sqlglot's token stream. Each ``_read_…`` takes what it names or raises."""

    def _begin(self, raw_tokens: list[Token], sql: str) -> None:
        """Read all tokens as one piece of text: semicolons do not split them."""
        self.reset()
        self.sql, self._chunks = sql, [raw_tokens]
        self._advance_chunk()

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> NoReturn:
        """Unlike sqlglot's: the place is the token's start, from 1, and the message is one plain line."""
        token = token or self._curr
        offset = token.start if token else self._prev.end + 1 if self._prev else 0
        line, column = position(self.sql, offset)
        raise ParseError.new(f"line {line}, column {column}: {message}", description=message, line=line, col=column)

    def _expected(self, what: str) -> NoReturn:
        self.raise_error(f"expected {what}, found {self._found()}")

    def _found(self) -> str:
        token = self._curr
        if not token:
            return "the end of the statement"
        return shown(self.sql[token.start : token.end + 1])

    def _word(self) -> str:
        """The current token in upper case if it is a word without quotes, else nothing."""
        token = self._curr
        if not token or token.token_type in self.TEXT_MATCH_EXCLUDED_TOKENS or not is_bare(token.text):
            return ""
        return token.text.upper()

    def _words(self, most: int = 4) -> str:
        """The next words, for a message. Does not advance."""
        index = self._index
        words: list[str] = []
        while len(words) < most and (word := self._word()):
            words.append(word)
            self._advance()
        self._retreat(index)
        return shown(" ".join(words))

    def _read_words(self, *words: str) -> None:
        for word in words:
            if not self._match_text_seq(word):
                self._expected(word)

    def _read_choice(self, choices: Iterable[str]) -> str:
        found = next((choice for choice in choices if self._match_text_seq(*choice.split())), None)
        return found or self._expected(listing(choices))

    def _read_phrase(self, phrases: Iterable[str]) -> str:
        """Read one of several phrases. If only its beginning matches, the error points at the first other word."""
        found = next((phrase for phrase in phrases if self._match_text_seq(phrase.split()[0])), None)
        if not found:
            self._expected(listing(phrases))
        self._read_words(*found.split()[1:])
        return found

    def _read_end(self, *instead: str) -> None:
        """:param instead: what else the grammar allows here, for the message."""
        if self._curr:
            self._expected(listing((*instead, "the end of the statement")))

    def _read_symbol(self, token_type: TokenType, symbol: str) -> None:
        if not self._match(token_type):
            self._expected(symbol)

    def _read_list(self, read: Callable[[], T]) -> list[T]:
        """``(a, b, …)``, at least one."""
        self._read_symbol(TokenType.L_PAREN, "(")
        items = [read()]
        while self._match(TokenType.COMMA):
            items.append(read())
        if not self._match(TokenType.R_PAREN):
            self._expected(", or )")
        return items

    def _read_identifier(self, what: str) -> exp.Identifier:
        token = self._curr
        if token and token.token_type == TokenType.IDENTIFIER:
            name = token.text
        elif word := self._word():
            name = fold(token.text)
            if name in RESERVED:
                self.raise_error(f'expected {what}, found {word}, a reserved word; to use it as a name, write "{name}"')
        else:
            self._expected(what)
        self._check(name, what, token)
        self._advance()
        return identifier(name, token)

    def _check(self, name: str, what: str, token: Token) -> None:
        try:
            check_name(name, what)
        except ValueError as error:
            self.raise_error(str(error), token)

    def _read_name(self, what: str) -> exp.Table:
        """``[schema.]name``."""
        first = self._read_identifier(what)
        if not self._match(TokenType.DOT):
            return exp.Table(this=first)
        second = self._read_identifier(f"{what} after the schema")
        if self._match(TokenType.DOT, advance=False):
            self.raise_error("a name has at most two parts, schema.name")
        return exp.Table(this=second, db=first)

    def _read_path(self, what: str, most: str) -> Path:
        """Names with dots between them, as many as ``most``, such as ``schema.name``, has; or one in single quotes."""
        token = self._curr
        if self._match(TokenType.STRING):
            self._check(token.text, what, token)
            return Path(expressions=[identifier(token.text, token)]).update_positions(token)
        parts = [self._read_identifier(what)]
        while self._match(TokenType.DOT):
            if len(parts) > most.count("."):
                self.raise_error(f"{what} has at most {len(parts)} parts, {most}", self._prev)
            parts.append(self._read_identifier(f"{what} after the dot"))
        return Path(expressions=parts).update_positions(token)

    def _read_string(self, what: str) -> exp.Literal:
        token = self._curr
        if not self._match(TokenType.STRING):
            self._expected(what)
        return exp.Literal.string(token.text).update_positions(token)

    def _read_integer(self, what: str, *, signed: bool = False) -> exp.Literal:
        start = self._curr
        minus = "-" if signed and self._match(TokenType.DASH) else ""
        token = self._curr
        if token.token_type != TokenType.NUMBER or not token.text.isdecimal():
            self._expected(what)
        digits = token.text.lstrip("0") or "0"
        if len(digits) > _INT64_DIGITS or int(digits) > INT64_MAX:
            self.raise_error(f"the number is larger than {INT64_MAX}", start)
        self._advance()
        text = minus + digits if digits != "0" else "0"
        return exp.Literal(this=text, is_string=False).update_positions(start)

    def _read_boolean(self) -> exp.Boolean:
        token = self._curr
        return exp.Boolean(this=self._read_choice(("TRUE", "FALSE")) == "TRUE").update_positions(token)

    def _read_options(self, known: Mapping[str, Callable[[], exp.Expr | None]]) -> list[Option]:
        """``(NAME [=] value, …)``; each at most once."""
        seen: set[str] = set()

        def read() -> Option:
            name = self._read_option_name(known, seen)
            self._match(TokenType.EQ)
            return Option(this=name.this, expression=known[name.this]()).update_positions(name)

        return self._read_list(read)

    def _read_option_name(self, known: Iterable[str], seen: set[str]) -> exp.Var:
        start, words = self._curr, self._words()
        name = next((name for name in known if self._match_text_seq(*name.split())), None)
        if not name and "EXCLUDE COLUMNS" in known and self._match_text_seq("IGNORE", "COLUMNS"):
            name = "EXCLUDE COLUMNS"  # the old spelling of this option
        if not name and words:
            self.raise_error(f"there is no option {words} here; options are: {', '.join(known)}")
        name = name or self._expected(listing(known))
        if name in seen:
            self.raise_error(f"{name} is given twice", start)
        seen.add(name)
        return exp.Var(this=name).update_positions(start)

    def _read_with(self, known: Mapping[str, Callable[[], exp.Expr]], *instead: str) -> list[Option]:
        """``[WITH (…)]``, at the end of a statement."""
        settings = self._read_options(known) if (given := self._match_text_seq("WITH")) else []
        self._read_end(*() if given else (*instead, "WITH"))
        return settings

    def _read_known(self, what: str, known: Iterable[str], later: Iterable[str]) -> str:
        """Read a known word. A word that is planned, and not registered yet, gets an error of its own."""
        known = tuple(known)
        for word in later:
            if word not in known and self._match_text_seq(*word.split(), advance=False):
                self.raise_error(f"{what} {word} is not supported yet; use {listing(known)}")
        return self._read_choice(known)
