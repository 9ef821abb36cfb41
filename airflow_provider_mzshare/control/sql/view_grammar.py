"""The grammar of statements that hold a query, views and SELECT, and of those that would write."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.object_grammar import ObjectGrammar
from airflow_provider_mzshare.control.sql.query_grammar import BEGINNINGS, QueryGrammar

_BEFORE_TARGET = {"INSERT": ("INTO",), "UPDATE": (), "DELETE": ("FROM",)}


class ViewGrammar(ObjectGrammar):
    def _read_create_view(self, name: exp.Table, exists: bool) -> exp.Expr:
        if self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("a view has no column list; name its columns in the query, as in SELECT a AS b")
        self._read_words("AS")
        return nodes.CreateView(this=name, exists=exists, expression=self._read_query())

    def _read_alter_view(self) -> exp.Expr:
        name = self._read_name("a view name")
        self._read_phrase(("RENAME TO",))
        return self._read_rename("VIEW", name)

    def _query_begins(self) -> bool:
        """Whether a query stands here, perhaps in brackets."""
        first = next((t for t in self._tokens[self._index :] if t.token_type != TokenType.L_PAREN), None)
        return first is not None and first.token_type in BEGINNINGS

    def _read_query(self) -> exp.Query:
        """All that is left of the statement."""
        if not self._curr:
            self._expected("a query, SELECT …")
        query = QueryGrammar(dialect=self.dialect).read(self._tokens[self._index :], self.sql)
        self._advance(len(self._tokens) - self._index)
        return query

    def _read_write(self, verb: str) -> exp.Expr:
        """Read a statement up to its target. The rest is skipped: such statements are always refused."""
        self._read_words(*_BEFORE_TARGET[verb])
        self._match_text_seq("ONLY")
        name = self._read_name("a table name")
        self._advance(len(self._tokens) - self._index)
        return nodes.Write(this=name, verb=verb)
