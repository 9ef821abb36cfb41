"""The grammar of the clauses that say how records become rows, for tables and old-style sources."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.column_grammar import ColumnGrammar
from airflow_provider_mzshare.envelopes.registry import envelope_words
from airflow_provider_mzshare.formats.registry import sql_words

FORMATS_LATER = ("AVRO", "CSV", "PROTOBUF", "REGEX")
INCLUDES = ("PARTITION", "OFFSET", "TIMESTAMP", "KEY")
INCLUDES_LATER = ("HEADERS", "HEADER")


class DecodingGrammar(ColumnGrammar):
    def _read_decoding(self, node: exp.Expr) -> list[str]:
        """``[FORMAT …] [INCLUDE …] [ENVELOPE …]``. Returns what else could have stood at the end."""
        self._read_formats(node)
        node.set("include", self._read_includes())
        if self._match_text_seq("ENVELOPE"):
            node.set("envelope", self._read_placed("ENVELOPE", envelope_words(), ()))
            if self._match(TokenType.L_PAREN):
                node.set("inline", self._read_inline())
        clauses = ("format", "include", "envelope")
        last = max((number for number, clause in enumerate(clauses) if node.args.get(clause)), default=-1)
        return [clause.upper() for clause in clauses[last + 1 :]]

    def _read_formats(self, node: exp.Expr) -> None:
        """``FORMAT g``, or ``KEY FORMAT f VALUE FORMAT g``."""
        if self._match_text_seq("VALUE", "FORMAT", advance=False):
            self.raise_error("VALUE FORMAT needs KEY FORMAT before it; FORMAT alone says how values are decoded")
        start = self._curr
        if self._match_text_seq("KEY", "FORMAT"):
            key = exp.Var(this=self._read_known("KEY FORMAT", sql_words(), FORMATS_LATER))
            node.set("key_format", key.update_positions(start))
            start = self._curr
            self._read_words("VALUE", "FORMAT")
            value = exp.Var(this=self._read_known("VALUE FORMAT", sql_words(), FORMATS_LATER))
            node.set("format", value.update_positions(start))
        elif self._match_text_seq("FORMAT"):
            node.set("format", self._read_placed("FORMAT", sql_words(), FORMATS_LATER))

    def _read_placed(self, clause: str, known: Iterable[str], later: Iterable[str]) -> exp.Var:
        """Errors about the word point at the clause's keyword."""
        start = self._prev
        return exp.Var(this=self._read_known(clause, known, later)).update_positions(start)

    def _read_includes(self) -> list[nodes.Include]:
        if not self._match_text_seq("INCLUDE"):
            return []
        items = [self._read_include()]
        while self._match(TokenType.COMMA):
            items.append(self._read_include())
        return items

    def _read_include(self) -> nodes.Include:
        """``KEY``, ``KEY AS k`` or ``KEY (a type, …)``; only the key has columns."""
        start = self._curr
        what = self._read_known("INCLUDE", INCLUDES, INCLUDES_LATER)
        if what == "KEY" and self._match(TokenType.L_PAREN, advance=False):
            columns = self._read_list(self._read_column)
            return nodes.Include(this=what, expressions=columns).update_positions(start)
        alias = self._read_identifier("a column name") if self._match_text_seq("AS") else None
        return nodes.Include(this=what, alias=alias).update_positions(start)

    def _read_inline(self) -> nodes.Inline:
        """``VALUE DECODING ERRORS [=] INLINE [AS e])``; INLINE may stand in brackets of its own."""
        start = self._curr
        self._read_words("VALUE", "DECODING", "ERRORS")
        self._match(TokenType.EQ)
        in_brackets = self._match(TokenType.L_PAREN)
        self._read_words("INLINE")
        alias = self._read_identifier("a column name") if self._match_text_seq("AS") else None
        for _ in range(2 if in_brackets else 1):
            self._read_symbol(TokenType.R_PAREN, ")")
        return nodes.Inline(alias=alias).update_positions(start)
