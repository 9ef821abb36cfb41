"""The grammar of statements about sources: CREATE SOURCE, ALTER SOURCE."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.grammar import listing
from airflow_provider_mzshare.control.sql.legacy_grammar import LegacyGrammar
from airflow_provider_mzshare.control.sql.options import GENERATORS
from airflow_provider_mzshare.core.ids import is_item_id

SOURCE_KINDS = ("KAFKA", "LOAD GENERATOR")
SOURCE_KINDS_LATER = ("POSTGRES", "MYSQL", "SQL SERVER", "FILE", "WEBHOOK")
GENERATORS_LATER = ("TPCH", "MARKETING", "DATUMS", "CLOCK")
ALTERATIONS = ("SET", "RESET", "RENAME TO", "ADD SUBSOURCE", "DROP SUBSOURCE", "REFRESH REFERENCES")


class SourceGrammar(LegacyGrammar):
    def _read_create_source(self, name: exp.Table, exists: bool) -> exp.Expr:
        columns = self._read_list(self._read_column) if self._match(TokenType.L_PAREN, advance=False) else []
        self._read_words("FROM")
        kind = self._read_known("source kind", SOURCE_KINDS, SOURCE_KINDS_LATER)
        node = nodes.CreateSource(this=name, exists=exists, kind=kind, columns=columns)
        if kind == "KAFKA":
            self._read_kafka(node)
        else:
            self._read_generator(node)
        instead = self._read_old_clauses(node)
        node.set("settings", self._read_with({**self._source_settings(), **self._path_options()}, *instead))
        return node

    def _read_kafka(self, node: nodes.CreateSource) -> None:
        self._read_words("CONNECTION")
        node.set("connection", self._read_identifier("a connection name"))
        known: dict[str, Callable[[], exp.Expr]] = {
            "TOPIC": lambda: self._read_string("a topic in single quotes"),
            "START OFFSET": self._read_offsets,
            "START TIMESTAMP": lambda: self._read_integer("milliseconds, a whole number", signed=True),
        }
        node.set("expressions", self._read_options(known))

    def _read_offsets(self) -> exp.Expr:
        return exp.Tuple(expressions=self._read_list(lambda: self._read_integer("an offset, a whole number")))

    def _read_generator(self, node: nodes.CreateSource) -> None:
        generator = self._read_known("LOAD GENERATOR", GENERATORS, GENERATORS_LATER)
        node.set("generator", generator)
        if self._match(TokenType.L_PAREN, advance=False):
            read = {
                "TICK INTERVAL": lambda: self._read_string("a duration such as '1s'"),
                "SEED": lambda: self._read_integer("a whole number", signed=True),
            }
            plain = lambda: self._read_integer("a whole number")  # noqa: E731
            node.set("expressions", self._read_options({name: read.get(name, plain) for name in GENERATORS[generator]}))

    def _source_settings(self) -> dict[str, Callable[[], exp.Expr]]:
        return {
            "TRIGGER INTERVAL": lambda: self._read_string("a duration such as '500ms'"),
            "MAX RECORDS PER TICK": lambda: self._read_integer("a whole number"),
            "IDLE TICK INTERVAL": lambda: self._read_string("a duration such as '10s'"),
            "BACKFILL RATE": lambda: self._read_integer("records per second, a whole number"),
            "CUTOVER WAIT": lambda: self._read_string("a duration such as '250ms'"),
        }

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
