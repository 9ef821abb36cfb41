"""The grammar of old syntax: clauses of a source about its outputs, from before there were tables, and subsources."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.option_grammar import ReadValue
from airflow_provider_mzshare.control.sql.options import COLUMN_OPTIONS
from airflow_provider_mzshare.control.sql.table_grammar import REFERENCE_PARTS, TableGrammar

OUTPUTS = ("ALL TABLES", "SCHEMAS", "TABLES")


class LegacyGrammar(TableGrammar):
    def _read_old_clauses(self, node: nodes.CreateSource) -> list[str]:
        """Read the clauses between the upstream's options and WITH. Returns what else could follow, for messages."""
        instead = self._read_decoding(node)
        if self._match_text_seq("FOR"):
            node.set("outputs", self._read_outputs())
            instead = []
        if not any(node.args.get(clause) for clause in ("format", "include", "envelope", "outputs")):
            instead = []  # no old clause so far, so messages do not offer old clauses
        else:
            instead.append("EXPOSE PROGRESS AS")
        if self._match_text_seq("EXPOSE"):
            self._read_words("PROGRESS", "AS")
            node.set("progress", self._read_name("a name for the progress"))
            return []
        return instead

    def _read_outputs(self) -> nodes.Outputs:
        start = self._prev
        kind = self._read_phrase(OUTPUTS)
        listed: list[exp.Expr] = []
        if kind == "SCHEMAS":
            listed = list(self._read_list(lambda: self._read_identifier("a schema of the upstream")))
        elif kind == "TABLES":
            listed = list(self._read_list(self._read_subsource))
        return nodes.Outputs(this=kind, expressions=listed).update_positions(start)

    def _read_subsource(self) -> nodes.Subsource:
        start = self._curr
        reference = self._read_reference()
        alias = self._read_name("a subsource name") if self._match_text_seq("AS") else None
        return nodes.Subsource(this=reference, alias=alias).update_positions(start)

    def _path_options(self) -> dict[str, ReadValue]:
        """Options that name columns. In old syntax a column has its reference in front."""
        parts = f"{REFERENCE_PARTS}.column"
        return {words: self._listed(lambda: self._read_path("a column", parts)) for words in COLUMN_OPTIONS}

    # ── statements of their own ───────────────────────────────────────────────────────────────────────────────────────

    def _read_add_subsources(self, source: exp.Table) -> exp.Expr:
        added = [self._read_subsource()]
        while self._match(TokenType.COMMA):
            added.append(self._read_subsource())
        return nodes.AddSubsources(
            this=source, expressions=added, settings=self._read_with(self._path_options(), "a comma")
        )

    def _read_drop_subsources(self, source: exp.Table) -> exp.Expr:
        exists = self._read_if_exists()
        names = [self._read_name("a subsource name")]
        while self._match(TokenType.COMMA):
            names.append(self._read_name("a subsource name"))
        return nodes.DropSubsources(
            this=source, expressions=names, exists=exists, cascade=self._read_cascade("a comma")
        )

    def _read_create_subsource(self, name: exp.Table) -> exp.Expr:
        columns = self._read_list(self._read_column) if self._match(TokenType.L_PAREN, advance=False) else []
        self._read_words("OF", "SOURCE")
        source = self._read_name("a source name")
        self._read_words("WITH")
        columns_of = self._readers(COLUMN_OPTIONS.values())
        known = {"EXTERNAL REFERENCE": self._read_reference, "PROGRESS": self._read_nothing, **columns_of}
        node = nodes.CreateSubsource(this=name, expressions=columns, source=source, settings=self._read_options(known))
        self._read_end()
        return node

    def _read_nothing(self) -> None:
        return None
