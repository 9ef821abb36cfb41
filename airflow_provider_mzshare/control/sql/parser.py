"""Chooses the grammar of each statement. It checks the form only, and refuses every statement that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, NoReturn

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.grammar import listing
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.control.sql.source_grammar import SourceGrammar
from airflow_provider_mzshare.control.sql.view_grammar import ViewGrammar

CREATED = ("SOURCE", "TABLE", "VIEW", "SCHEMA", "SUBSOURCE")
ALTERED = ("SOURCE", "TABLE", "VIEW", "SCHEMA", "SYSTEM")
DROPPED = ("SOURCE", "TABLE", "VIEW", "SCHEMA")
PRINTED = ("SOURCE", "TABLE", "VIEW")
SHOWN = ("SOURCES", "TABLES", "VIEWS", "SUBSOURCES", "SCHEMAS", "CREATE")
STATEMENTS = (
    *(f"CREATE {kind}" for kind in CREATED), *(f"ALTER {kind}" for kind in ALTERED),
    *(f"DROP {kind}" for kind in DROPPED), *(f"SHOW {what}" for what in SHOWN), "COMMENT ON", "EXPLAIN", "SELECT",
    "BEGIN", "COMMIT",
)  # fmt: skip
VERBS = ("CREATE", "ALTER", "DROP", "SHOW", "COMMENT ON", "EXPLAIN", "SELECT", "BEGIN", "COMMIT")
_INSTEAD = f"; statements begin with {listing(VERBS)}"


class MzShareParser(SourceGrammar, ViewGrammar):
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[[MzShareParser], exp.Expr]]] = {
        TokenType.CREATE: lambda self: self._read_create(),
        TokenType.ALTER: lambda self: self._read_alter(),
        TokenType.DROP: lambda self: self._read_drop(),
        TokenType.SHOW: lambda self: self._read_show(),
        TokenType.COMMENT: lambda self: self._read_comment(),
        TokenType.INSERT: lambda self: self._read_write("INSERT"),
        TokenType.UPDATE: lambda self: self._read_write("UPDATE"),
        TokenType.DELETE: lambda self: self._read_write("DELETE"),
        TokenType.BEGIN: lambda self: self._read_transaction_mark(exp.Transaction()),
        TokenType.COMMIT: lambda self: self._read_transaction_mark(exp.Commit()),
        TokenType.ROLLBACK: lambda self: self._refuse_rollback(),
    }

    def parse_name(self, raw_tokens: list[Token], sql: str) -> exp.Table:
        """The text as one ``[schema.]name``."""
        self._begin(raw_tokens, sql)
        name = self._read_name("a name")
        self._read_end()
        return name

    # ── sqlglot's entry points ────────────────────────────────────────────────────────────────────────────────────────

    def _parse_batch_statements(
        self, parse_method: Callable[[Parser], exp.Expr | None], sep_first_statement: bool = True
    ) -> list[exp.Expr | None]:
        """Replaces sqlglot's, which drops everything after a leading ELSE and accepts END as a statement."""
        statements = []
        while self._chunk_index < len(self._chunks):
            self._advance_chunk()
            statements.append(parse_method(self))
            self._read_end()
        return statements

    def _parse_statement(self) -> exp.Expr | None:
        start = self._curr
        if not start or self._match(TokenType.SEMICOLON):
            return None
        if self._query_begins():
            return self._read_query().update_positions(start)
        if self._match_text_seq("EXPLAIN"):
            return self._read_explain().update_positions(start)
        if not self._match_set(self.STATEMENT_PARSERS):
            self._refuse_statement()
        return self.STATEMENT_PARSERS[start.token_type](self).update_positions(start)

    def _parse_as_command(self, start: Token) -> NoReturn:
        """Replaces sqlglot's, which accepts unknown statements as text."""
        self.raise_error(f"{start.text.upper()} is not supported{_INSTEAD}", start)

    def _refuse_statement(self) -> NoReturn:
        word = self._word() or self._expected("a statement")
        self.raise_error(f"{shown(word)} is not supported{_INSTEAD}")

    def _read_kind(self, verb: str, kinds: Iterable[str]) -> str:
        """The word after ``verb``, one of ``kinds``."""
        found = next((kind for kind in kinds if self._match_text_seq(kind)), "")
        if not found:
            word = self._word() or self._expected(listing(kinds))
            self.raise_error(f"{shown(f'{verb} {word}')} is not supported; {verb} takes {listing(kinds)}")
        return found

    # ── transactions, EXPLAIN, SHOW, DROP ─────────────────────────────────────────────────────────────────────────────

    def _read_transaction_mark(self, node: exp.Expr) -> exp.Expr:
        self._match_texts(("WORK", "TRANSACTION"))
        self._read_end()
        return node

    def _refuse_rollback(self) -> NoReturn:
        self.raise_error(
            "ROLLBACK is not supported: nothing is done before COMMIT, so leave the transaction out", self._prev
        )

    def _read_explain(self) -> exp.Expr:
        start = self._curr
        if self._match_texts(("EXPLAIN", "BEGIN", "COMMIT"), advance=False) or not start:
            self._expected("a statement to explain")
        statement = self._parse_statement()
        return nodes.Explain(this=statement)

    def _read_show(self) -> exp.Expr:
        what = self._read_kind("SHOW", SHOWN)
        if what == "CREATE":
            kind = next((kind for kind in PRINTED if self._match_text_seq(kind)), "")
            name = self._read_name(f"a {kind.lower()} name" if kind else "a name")
            self._read_end()
            return nodes.ShowCreate(this=name, kind=kind or None)
        schema = None
        if what != "SCHEMAS" and self._match_texts(("FROM", "IN")):
            schema = self._read_item("SCHEMA")
        self._read_end(*() if schema or what == "SCHEMAS" else ("FROM",))
        return nodes.ShowItems(this=what, schema=schema)

    def _read_drop(self) -> exp.Expr:
        kind = self._read_kind("DROP", DROPPED)
        exists = self._read_if_exists()
        name = self._read_item(kind)
        return nodes.DropItem(this=name, kind=kind, exists=exists, cascade=self._read_cascade())

    # ── CREATE and ALTER: each kind of item has its own grammar ──────────────────────────────────────────────────────

    def _read_create(self) -> exp.Expr:
        kind = self._read_kind("CREATE", CREATED)
        if kind == "SUBSOURCE":
            return self._read_create_subsource(self._read_name("a subsource name"))
        exists = self._match_text_seq("IF")
        if exists:
            self._read_words("NOT", "EXISTS")
        if kind == "SCHEMA":
            return self._read_create_schema(exists)
        name = self._read_name(f"a {kind.lower()} name")
        read = {"SOURCE": self._read_create_source, "TABLE": self._read_create_table, "VIEW": self._read_create_view}
        return read[kind](name, exists)

    def _read_alter(self) -> exp.Expr:
        read = {
            "SOURCE": self._read_alter_source,
            "TABLE": self._read_alter_table,
            "VIEW": self._read_alter_view,
            "SCHEMA": self._read_alter_schema,
            "SYSTEM": self._read_alter_system,
        }
        return read[self._read_kind("ALTER", ALTERED)]()
