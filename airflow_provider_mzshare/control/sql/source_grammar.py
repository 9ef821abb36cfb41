"""The grammar of statements about sources: CREATE SOURCE, ALTER SOURCE."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.connectors.kind import ConnectorKind
from airflow_provider_mzshare.connectors.registry import kinds_by_words
from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.grammar import listing
from airflow_provider_mzshare.control.sql.legacy_grammar import LegacyGrammar
from airflow_provider_mzshare.control.sql.option_grammar import ReadValue
from airflow_provider_mzshare.core.ids import is_item_id
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS

SOURCE_KINDS_LATER = ("MYSQL", "SQL SERVER", "FILE", "WEBHOOK")
ALTERATIONS = ("SET", "RESET", "RENAME TO", "ADD SUBSOURCE", "DROP SUBSOURCE", "REFRESH REFERENCES")


class SourceGrammar(LegacyGrammar):
    def _read_create_source(self, name: exp.Table, exists: bool) -> exp.Expr:
        node = nodes.CreateSource(this=name, exists=exists)
        self._read_columns(node, "columns")
        self._read_words("FROM")
        kinds = kinds_by_words()
        later = [words for words in SOURCE_KINDS_LATER if words not in kinds]
        kind = kinds[self._read_known("source kind", kinds, later)]
        node.set("kind", kind.words)
        self._read_upstream(node, kind)
        instead = self._read_old_clauses(node)
        node.set("settings", self._read_with({**self._source_settings(), **self._path_options()}, *instead))
        return node

    def _read_upstream(self, node: nodes.CreateSource, kind: ConnectorKind[Any]) -> None:
        """``[CONNECTION c] [variant] [(option, …)]``, as the kind has it."""
        options = kind.options
        if kind.takes_connection:
            self._read_words("CONNECTION")
            node.set("connection", self._read_identifier("a connection name"))
        if kind.variants:
            variant = self._read_known(kind.words, kind.variants, kind.variants_later)
            node.set("variant", variant)
            options = tuple(option for option in options if option.words in kind.variants[variant])
        if any(option.required for option in options) or self._match(TokenType.L_PAREN, advance=False):
            node.set("expressions", self._read_options(self._readers(options)))

    def _source_settings(self) -> dict[str, ReadValue]:
        return self._readers(SOURCE_SETTINGS.values())

    # ── ALTER SOURCE ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_alter_source(self) -> exp.Expr:
        written = self._curr
        name = self._read_name("a source name")
        if self._match_texts(("ADD", "DROP"), advance=False):
            return self._read_alter_subsources(name)
        action = self._read_phrase(ALTERATIONS)
        if action in ("SET", "RESET"):
            return self._read_set_or_reset("SOURCE", name, action, self._source_settings())
        if action == "RENAME TO":
            return self._read_rename("SOURCE", name)
        self._read_end()
        return nodes.RefreshReferences(this=name, id=self._is_id(written, name))

    def _is_id(self, written: Token, name: exp.Table) -> bool:
        """A bare word like ``u5`` may be an id or a name; in quotes or with a schema it is a name."""
        return written.token_type != TokenType.IDENTIFIER and not name.args.get("db") and is_item_id(name.name)

    def _read_alter_subsources(self, name: exp.Table) -> exp.Expr:
        verb = self._read_choice(("ADD", "DROP"))
        if not self._match_texts(("SUBSOURCE", "TABLE")):
            self._expected(listing(("SUBSOURCE", "TABLE")))
        return self._read_add_subsources(name) if verb == "ADD" else self._read_drop_subsources(name)
