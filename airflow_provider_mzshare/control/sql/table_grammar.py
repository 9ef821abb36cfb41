"""The grammar of statements about tables: CREATE TABLE … FROM SOURCE, ALTER TABLE."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.column_grammar import ColumnGrammar
from airflow_provider_mzshare.control.sql.object_grammar import ObjectGrammar
from airflow_provider_mzshare.control.sql.option_grammar import OptionGrammar
from airflow_provider_mzshare.control.sql.options import TABLE_SETTINGS
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS
from airflow_provider_mzshare.envelopes.registry import envelope_words, planned_words
from airflow_provider_mzshare.formats.registry import sql_words

FORMATS_LATER = ("AVRO", "CSV", "PROTOBUF", "REGEX")
INCLUDES = ("PARTITION", "OFFSET", "TIMESTAMP", "KEY")
INCLUDES_LATER = ("HEADERS", "HEADER")
ALTERATIONS = ("RESUME", "RESNAPSHOT", "SET", "RESET", "RENAME TO", "SWAP WITH")
REFERENCE_PARTS = "database.schema.name"


class TableGrammar(ColumnGrammar, ObjectGrammar, OptionGrammar):
    def _read_create_table(self, name: exp.Table, exists: bool) -> exp.Expr:
        columns = self._read_list(self._read_column) if self._match(TokenType.L_PAREN, advance=False) else []
        if self._match_text_seq("FROM", "WEBHOOK", advance=False):
            self.raise_error("FROM WEBHOOK is not supported yet; use FROM SOURCE")
        if not self._match_text_seq("FROM", "SOURCE"):
            self._expected("FROM SOURCE" if columns else "a column list or FROM SOURCE")
        source = self._read_name("a source name")
        reference = None
        if self._match(TokenType.L_PAREN):
            self._read_words("REFERENCE")
            self._match(TokenType.EQ)
            reference = self._read_reference()
            self._read_symbol(TokenType.R_PAREN, ")")
        node = nodes.CreateTable(this=name, exists=exists, expressions=columns, source=source, reference=reference)
        instead = self._read_decoding(node)
        node.set("settings", self._read_with(self._readers(TABLE_OPTIONS.values()), *instead))
        return node

    def _read_decoding(self, node: exp.Expr) -> list[str]:
        """``[FORMAT …] [INCLUDE …] [ENVELOPE …]``. Returns what else could have stood at the end."""
        if self._match_texts(("KEY", "VALUE"), advance=False) and self._next and self._next.text.upper() == "FORMAT":
            self.raise_error(f"{self._word()} FORMAT is not supported yet; use FORMAT")
        if self._match_text_seq("FORMAT"):
            node.set("format", self._read_placed("FORMAT", sql_words(), FORMATS_LATER))
        node.set("include", self._read_includes())
        if self._match_text_seq("ENVELOPE"):
            node.set("envelope", self._read_placed("ENVELOPE", envelope_words(), planned_words()))
        clauses = ("format", "include", "envelope")
        last = max((number for number, clause in enumerate(clauses) if node.args.get(clause)), default=-1)
        return [clause.upper() for clause in clauses[last + 1 :]]

    def _read_placed(self, clause: str, known: Iterable[str], later: Iterable[str]) -> exp.Var:
        """Errors about the word point at the clause's keyword."""
        start = self._prev
        return exp.Var(this=self._read_known(clause, known, later)).update_positions(start)

    def _read_reference(self) -> nodes.Path:
        return self._read_path("a reference", REFERENCE_PARTS)

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
        action = self._read_phrase(ALTERATIONS)
        if action in ("SET", "RESET"):
            return self._read_set_or_reset("TABLE", name, action, self._readers(TABLE_SETTINGS.values()))
        if action == "RENAME TO":
            return self._read_rename("TABLE", name)
        if action == "SWAP WITH":
            return self._read_swap("TABLE", name, self._read_name("a table name"))
        self._read_end()
        return nodes.AlterTable(this=name, action=action)
