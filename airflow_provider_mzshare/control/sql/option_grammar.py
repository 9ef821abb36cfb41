"""The grammar of options, as their tables have them: what stands behind an option's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql.grammar import Reader
from airflow_provider_mzshare.core.options import Option

ReadValue = Callable[[], exp.Expr]


class OptionGrammar(Reader):
    def _readers(self, options: Iterable[Option]) -> dict[str, ReadValue]:
        return {option.words: self._reader(option) for option in options}

    def _reader(self, option: Option) -> ReadValue:
        read = self._value_reader(option)
        if not option.preposition:
            return read

        def behind() -> exp.Expr:
            self._read_words(option.preposition)
            self._match(TokenType.EQ)
            return read()

        return behind

    def _value_reader(self, option: Option) -> ReadValue:
        def whole() -> exp.Expr:
            return self._read_integer(option.expected, signed=option.type == "signed")

        if option.type in ("whole", "signed"):
            return whole
        if option.type == "wholes":
            return lambda: exp.Tuple(expressions=self._read_list(whole))
        if option.type == "boolean":
            return self._read_boolean
        if option.type == "names":
            return self._listed(lambda: self._read_identifier("a column name"))
        return lambda: self._read_string(option.expected)

    def _listed(self, read: ReadValue) -> ReadValue:
        return lambda: exp.Tuple(expressions=self._read_list(read))
