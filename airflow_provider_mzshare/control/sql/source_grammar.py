"""The grammar of statements about sources: CREATE SOURCE, ALTER SOURCE."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.reading import Reader

SOURCE_KINDS = ("KAFKA",)
SOURCE_KINDS_LATER = ("POSTGRES", "MYSQL", "SQL SERVER", "LOAD GENERATOR", "FILE", "WEBHOOK")
_TABLE_CLAUSES = ("FORMAT", "KEY FORMAT", "VALUE FORMAT", "INCLUDE", "ENVELOPE", "FOR", "EXPOSE")


class SourceGrammar(Reader):
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

    def _read_alter_source(self) -> exp.Expr:
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
            "BACKFILL RATE": lambda: self._read_integer("records per second, a whole number"),
            "CUTOVER WAIT": lambda: self._read_string("a duration such as '250ms'"),
        }
