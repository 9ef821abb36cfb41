"""Which statements there are; it checks form only, and lets nothing through that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, NoReturn

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.reading import listing
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.control.sql.source_grammar import SourceGrammar
from airflow_provider_mzshare.control.sql.table_grammar import TableGrammar

STATEMENTS = (
    "CREATE SOURCE", "CREATE TABLE", "ALTER SOURCE", "ALTER TABLE", "DROP SOURCE", "DROP TABLE", "SHOW SOURCES",
    "SHOW TABLES", "SHOW CREATE", "BEGIN", "COMMIT",
)  # fmt: skip
_INSTEAD = f"; statements are: {', '.join(STATEMENTS)}"
ITEM_KINDS = ("SOURCE", "TABLE")
SHOWN = ("SOURCES", "TABLES", "CREATE")


class MzShareParser(SourceGrammar, TableGrammar):
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[[MzShareParser], exp.Expr]]] = {
        TokenType.CREATE: lambda self: self._read_create(),
        TokenType.ALTER: lambda self: self._read_alter(),
        TokenType.DROP: lambda self: self._read_drop(),
        TokenType.SHOW: lambda self: self._read_show(),
        TokenType.BEGIN: lambda self: self._read_transaction_mark(exp.Transaction()),
        TokenType.COMMIT: lambda self: self._read_transaction_mark(exp.Commit()),
        TokenType.ROLLBACK: lambda self: self._refuse_rollback(),
    }

    def parse_name(self, raw_tokens: list[Token], sql: str) -> exp.Table:
        """The text as one ``[schema.]name``."""
        self.reset()
        self.sql, self._chunks = sql, [raw_tokens]
        self._advance_chunk()
        name = self._read_name("a name")
        self._read_end()
        return name

    # ── sqlglot's entry points ────────────────────────────────────────────────────────────────────────────────────────

    def _parse_batch_statements(
        self, parse_method: Callable[[Parser], exp.Expr | None], sep_first_statement: bool = True
    ) -> list[exp.Expr | None]:
        """sqlglot's own drops everything from a leading ELSE on, and takes END for a statement."""
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
        if not self._match_set(self.STATEMENT_PARSERS):
            self._refuse_statement("", ())
        return self.STATEMENT_PARSERS[start.token_type](self).update_positions(start)

    def _parse_as_command(self, start: Token) -> NoReturn:
        """sqlglot's own lets what it does not know pass as text."""
        self.raise_error(f"{start.text.upper()} is not supported{_INSTEAD}", start)

    def _refuse_statement(self, verb: str, choices: Iterable[str]) -> NoReturn:
        """At the word after ``verb``, which is none of ``choices``."""
        word = self._word()
        if not word:
            self._expected(listing(choices) if verb else "a statement")
        self.raise_error(f"{shown(f'{verb} {word}'.strip())} is not supported{_INSTEAD}")

    # ── transactions, SHOW, DROP ──────────────────────────────────────────────────────────────────────────────────────

    def _read_transaction_mark(self, node: exp.Expr) -> exp.Expr:
        self._match_texts(("WORK", "TRANSACTION"))
        self._read_end()
        return node

    def _refuse_rollback(self) -> NoReturn:
        self.raise_error("ROLLBACK is not supported: nothing is done before COMMIT, so leave the group out", self._prev)

    def _read_show(self) -> exp.Expr:
        what = next((word for word in SHOWN if self._match_text_seq(word)), "") or self._refuse_statement("SHOW", SHOWN)
        if what != "CREATE":
            self._read_end()
            return nodes.ShowItems(this=what)
        kind = self._item_kind()
        name = self._read_name(f"a {kind.lower()} name" if kind else "a name")
        self._read_end()
        return nodes.ShowCreate(this=name, kind=kind or None)

    def _read_drop(self) -> exp.Expr:
        kind = self._item_kind() or self._refuse_statement("DROP", ITEM_KINDS)
        exists = self._match_text_seq("IF")
        if exists:
            self._read_words("EXISTS")
        name = self._read_name(f"a {kind.lower()} name")
        cascade = self._match_text_seq("CASCADE")
        self._read_end(*() if cascade else ("CASCADE",))
        return nodes.DropItem(this=name, kind=kind, exists=exists, cascade=cascade)

    def _item_kind(self) -> str:
        return next((kind for kind in ITEM_KINDS if self._match_text_seq(kind)), "")

    # ── CREATE and ALTER: each kind of item has its own grammar ──────────────────────────────────────────────────────

    def _read_create(self) -> exp.Expr:
        kind = self._item_kind() or self._refuse_statement("CREATE", ITEM_KINDS)
        exists = self._match_text_seq("IF")
        if exists:
            self._read_words("NOT", "EXISTS")
        name = self._read_name(f"a {kind.lower()} name")
        read = self._read_create_source if kind == "SOURCE" else self._read_create_table
        return read(name, exists)

    def _read_alter(self) -> exp.Expr:
        kind = self._item_kind() or self._refuse_statement("ALTER", ITEM_KINDS)
        return self._read_alter_source() if kind == "SOURCE" else self._read_alter_table()
