"""The grammar of statements about tables: CREATE TABLE … FROM SOURCE, ALTER TABLE."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.decoding_grammar import DecodingGrammar
from airflow_provider_mzshare.control.sql.object_grammar import ObjectGrammar
from airflow_provider_mzshare.control.sql.option_grammar import OptionGrammar
from airflow_provider_mzshare.control.sql.options import TABLE_SETTINGS
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS

ALTERATIONS = ("RESUME", "RESNAPSHOT", "SET", "RESET", "RENAME TO", "SWAP WITH")
REFERENCE_PARTS = "database.schema.name"


class TableGrammar(DecodingGrammar, ObjectGrammar, OptionGrammar):
    def _read_create_table(self, name: exp.Table, exists: bool) -> exp.Expr:
        node = nodes.CreateTable(this=name, exists=exists)
        self._read_columns(node)
        if self._match_text_seq("FROM", "WEBHOOK", advance=False):
            self.raise_error("FROM WEBHOOK is not supported yet; use FROM SOURCE")
        if not self._match_text_seq("FROM", "SOURCE"):
            self._expected("FROM SOURCE" if node.expressions else "a column list or FROM SOURCE")
        node.set("source", self._read_name("a source name"))
        if self._match(TokenType.L_PAREN):
            self._read_words("REFERENCE")
            self._match(TokenType.EQ)
            node.set("reference", self._read_reference())
            self._read_symbol(TokenType.R_PAREN, ")")
        instead = self._read_decoding(node)
        node.set("settings", self._read_with(self._readers(TABLE_OPTIONS.values()), *instead))
        return node

    def _read_reference(self) -> nodes.Path:
        return self._read_path("a reference", REFERENCE_PARTS)

    def _read_alter_table(self) -> exp.Expr:
        name = self._read_name("a table name")
        action = self._read_phrase(ALTERATIONS)
        if action in ("SET", "RESET"):
            return self._read_set_or_reset("TABLE", name, action, self._readers(TABLE_SETTINGS.values()))
        if action == "RENAME TO":
            return self._read_rename("TABLE", name)
        if action == "SWAP WITH":
            return self._read_swap("TABLE", name, self._read_name("a table name"))
        may_force = action == "RESNAPSHOT"
        force = may_force and self._match_text_seq("FORCE")
        self._read_end(*("FORCE",) if may_force and not force else ())
        return nodes.AlterTable(this=name, action=action, force=force)
