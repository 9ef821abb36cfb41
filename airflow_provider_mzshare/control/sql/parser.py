"""The grammar of our statements; it checks form only, and lets nothing through that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, NoReturn

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.column_types import COLUMN_TYPES, DEFAULT_NUMERIC, base_type, to_sql
from airflow_provider_mzshare.control.sql.reading import Reader, identifier, listing
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.types.schema import check_type

STATEMENTS = (
    "CREATE SOURCE", "CREATE TABLE", "ALTER SOURCE", "DROP SOURCE", "DROP TABLE", "SHOW SOURCES", "SHOW TABLES",
    "SHOW CREATE", "BEGIN", "COMMIT",
)  # fmt: skip
_INSTEAD = f"; statements are: {', '.join(STATEMENTS)}"
ITEM_KINDS = ("SOURCE", "TABLE")
SHOWN = ("SOURCES", "TABLES", "CREATE")
SOURCE_KINDS = ("KAFKA",)
SOURCE_KINDS_LATER = ("POSTGRES", "MYSQL", "SQL SERVER", "LOAD GENERATOR", "FILE", "WEBHOOK")
FORMATS = ("JSON", "TEXT", "BYTES")
FORMATS_LATER = ("AVRO", "CSV", "PROTOBUF", "REGEX")
ENVELOPES = ("NONE",)
ENVELOPES_LATER = ("UPSERT", "DEBEZIUM")
INCLUDES = ("PARTITION", "OFFSET", "TIMESTAMP", "KEY")
INCLUDES_LATER = ("HEADERS", "HEADER")
_TABLE_CLAUSES = ("FORMAT", "KEY FORMAT", "VALUE FORMAT", "INCLUDE", "ENVELOPE", "FOR", "EXPOSE")


class MzShareParser(Reader):
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

    # ── ALTER SOURCE ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_alter(self) -> exp.Expr:
        if not self._match_text_seq("SOURCE"):
            self._refuse_statement("ALTER", ("SOURCE",))
        name = self._read_name("a source name")
        if self._read_choice(("SET", "RESET")) == "SET":
            node = nodes.AlterSource(this=name, settings=self._read_options(self._source_settings()))
        else:
            seen: set[str] = set()
            reset = self._read_list(lambda: self._read_option_name(self._source_settings(), seen))
            node = nodes.AlterSource(this=name, reset=reset)
        self._read_end()
        return node

    def _source_settings(self) -> dict[str, Callable[[], exp.Expr]]:
        return {
            "TRIGGER INTERVAL": lambda: self._read_string("a duration such as '500ms'"),
            "MAX RECORDS PER TICK": lambda: self._read_integer("a whole number"),
            "IDLE TICK INTERVAL": lambda: self._read_string("a duration such as '10s'"),
        }

    # ── CREATE ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_create(self) -> exp.Expr:
        kind = self._item_kind() or self._refuse_statement("CREATE", ITEM_KINDS)
        exists = self._match_text_seq("IF")
        if exists:
            self._read_words("NOT", "EXISTS")
        name = self._read_name(f"a {kind.lower()} name")
        read = self._read_create_source if kind == "SOURCE" else self._read_create_table
        return read(name, exists)

    def _read_create_source(self, name: exp.Table, exists: bool) -> exp.Expr:
        self._read_words("FROM")
        kind = self._read_known("source kind", SOURCE_KINDS, SOURCE_KINDS_LATER)
        self._read_words("CONNECTION")
        connection = self._read_identifier("a connection name")
        options = self._read_options(
            {
                "TOPIC": lambda: self._read_string("a topic in single quotes"),
                "START OFFSET": self._read_offsets,
                "START TIMESTAMP": lambda: self._read_integer("milliseconds, a whole number", signed=True),
            }
        )
        for clause in _TABLE_CLAUSES:
            if self._match_text_seq(*clause.split(), advance=False):
                self.raise_error(f"{clause} on a source is not supported yet; give it to CREATE TABLE … FROM SOURCE")
        settings = self._read_with(self._source_settings())
        return nodes.CreateSource(
            this=name, exists=exists, kind=kind, connection=connection, expressions=options, settings=settings
        )

    def _read_offsets(self) -> exp.Expr:
        return exp.Tuple(expressions=self._read_list(lambda: self._read_integer("an offset, a whole number")))

    def _read_with(self, known: dict[str, Callable[[], exp.Expr]], *instead: str) -> list[nodes.Option]:
        settings = self._read_options(known) if (given := self._match_text_seq("WITH")) else []
        self._read_end(*() if given else (*instead, "WITH"))
        return settings

    def _read_known(self, what: str, known: Iterable[str], later: Iterable[str]) -> str:
        """A word we know; one that is planned is refused by name."""
        for word in later:
            if self._match_text_seq(*word.split(), advance=False):
                self.raise_error(f"{what} {word} is not supported yet; there is {listing(known, 'and')}")
        return self._read_choice(known)

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

    # ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_column(self) -> exp.Expr:
        return exp.ColumnDef(this=self._read_identifier("a column name"), kind=self._read_type())

    def _read_type(self) -> exp.Expr:
        start = self._curr
        spelling = self._read_type_words()
        canonical = base_type(spelling)
        if not canonical:
            self.raise_error(f"{shown(spelling)} is not a column type; there are: {', '.join(COLUMN_TYPES)}", start)
        digits = self._read_type_digits(spelling, canonical)
        if canonical == "numeric":
            canonical = f"numeric({','.join(digits)})" if digits else DEFAULT_NUMERIC
            try:
                check_type(canonical)
            except ValueError as error:
                self.raise_error(str(error), start)
        return exp.Var(this=to_sql(canonical)).update_positions(start)

    def _read_type_words(self) -> str:
        token = self._curr
        # sqlglot makes one token of DOUBLE PRECISION and CHARACTER VARYING, with one blank between.
        two_words = " " in token.text and token.token_type not in self.TEXT_MATCH_EXCLUDED_TOKENS
        if not self._word() and not two_words:
            self._expected("a column type")
        self._advance()
        spelling = token.text.lower()
        if spelling == "timestamp" and self._match_texts(("WITH", "WITHOUT")):
            spelling += f" {self._prev.text.lower()} time zone"
            self._read_words("TIME", "ZONE")
        return spelling

    def _read_type_digits(self, spelling: str, canonical: str) -> list[str]:
        if not self._match(TokenType.L_PAREN, advance=False):
            return []
        if canonical != "numeric":
            self.raise_error(f"{spelling} takes no length or precision")
        start = self._curr
        digits = [str(literal.this) for literal in self._read_list(lambda: self._read_integer("a whole number"))]
        if len(digits) > 2:
            self.raise_error(f"{spelling} takes a precision and a scale, no more", start)
        return digits if len(digits) == 2 else [*digits, "0"]
