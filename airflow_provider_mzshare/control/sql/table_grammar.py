"""The grammar of statements about tables: CREATE TABLE … FROM SOURCE, ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.column_grammar import ColumnGrammar
from airflow_provider_mzshare.control.sql.reading import identifier

FORMATS = ("JSON", "TEXT", "BYTES")
FORMATS_LATER = ("AVRO", "CSV", "PROTOBUF", "REGEX")
ENVELOPES = ("NONE",)
ENVELOPES_LATER = ("UPSERT", "DEBEZIUM")
INCLUDES = ("PARTITION", "OFFSET", "TIMESTAMP", "KEY")
INCLUDES_LATER = ("HEADERS", "HEADER")
ACTIONS = ("RESUME", "RESNAPSHOT")


class TableGrammar(ColumnGrammar):
    def _read_create_table(self, name: exp.Table, exists: bool) -> exp.Expr:
        columns = self._read_list(self._read_column) if self._match(TokenType.L_PAREN, advance=False) else []
        if self._match_text_seq("FROM", "WEBHOOK", advance=False):
            self.raise_error("FROM WEBHOOK is not supported yet; there is FROM SOURCE")
        if not self._match_text_seq("FROM", "SOURCE"):
            self._expected("FROM SOURCE" if columns else "a column list or FROM SOURCE")
        source = self._read_name("a source name")
        reference = None
        if self._match(TokenType.L_PAREN):
            self._read_words("REFERENCE")
            reference = self._read_reference()
            self._read_symbol(TokenType.R_PAREN, ")")
        if self._match_text_seq("KEY", "FORMAT", advance=False):
            self.raise_error("KEY FORMAT is not supported yet; there is FORMAT")
        self._read_words("FORMAT")
        node = nodes.CreateTable(this=name, exists=exists, expressions=columns, source=source, reference=reference)
        node.set("format", self._read_known("FORMAT", FORMATS, FORMATS_LATER))
        node.set("include", include := self._read_includes())
        if self._match_text_seq("ENVELOPE"):
            node.set("envelope", self._read_known("ENVELOPE", ENVELOPES, ENVELOPES_LATER))
        instead = () if node.args.get("envelope") else ("ENVELOPE",) if include else ("INCLUDE", "ENVELOPE")
        node.set("settings", self._read_with(self._table_settings(), *instead))
        return node

    def _table_settings(self) -> dict[str, Callable[[], exp.Expr]]:
        return {
            "ON DECODE ERROR": lambda: self._read_string("'RECORD' or 'STOP'"),
            "RETAIN HISTORY": self._read_history,
            "SNAPSHOT": self._read_boolean,
        }

    def _read_history(self) -> exp.Expr:
        self._read_words("FOR")
        self._match(TokenType.EQ)
        return self._read_string("a duration such as '1 day'")

    def _read_reference(self) -> exp.Identifier:
        token = self._curr
        if self._match(TokenType.STRING):
            self._check(token.text, "a reference", token)
            return identifier(token.text, token)
        reference = self._read_identifier("a reference")
        if self._match(TokenType.DOT, advance=False):
            self.raise_error("a reference with dots is written in quotes")
        return reference

    def _read_includes(self) -> list[nodes.Include]:
        if not self._match_text_seq("INCLUDE"):
            return []
        items = [self._read_include()]
        while self._match(TokenType.COMMA):
            items.append(self._read_include())
        return items

    def _read_include(self) -> nodes.Include:
        start = self._curr
        what = self._read_known("INCLUDE", INCLUDES, INCLUDES_LATER)
        alias = self._read_identifier("a column name") if self._match_text_seq("AS") else None
        return nodes.Include(this=what, alias=alias).update_positions(start)

    def _read_alter_table(self) -> exp.Expr:
        name = self._read_name("a table name")
        action = self._read_choice(ACTIONS)
        self._read_end()
        return nodes.AlterTable(this=name, action=action)
