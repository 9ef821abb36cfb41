"""The grammar that all kinds of objects share: schemas, names, options set later, comments, DROP, the whole system."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.grammar import Reader, identifier, listing
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, TABLE_OPTIONS

COMMENTED = ("SOURCE", "TABLE", "VIEW", "SCHEMA", "COLUMN")


class ObjectGrammar(Reader):
    def _read_item(self, kind: str) -> exp.Expr:
        """Read the name of an object of this kind. The name of a schema has one part."""
        what = f"a {kind.lower()} name"
        if kind != "SCHEMA":
            return self._read_name(what)
        schema = self._read_identifier(what)
        if self._match(TokenType.DOT, advance=False):
            self.raise_error("a schema's name has one part")
        return schema

    def _read_if_exists(self) -> bool:
        exists = self._match_text_seq("IF")
        if exists:
            self._read_words("EXISTS")
        return exists

    def _read_cascade(self, *instead: str) -> bool:
        """``[CASCADE | RESTRICT]``, at the end of a statement."""
        given = self._match_texts(("CASCADE", "RESTRICT"))
        cascade = given and self._prev.text.upper() == "CASCADE"
        self._read_end(*() if given else (*instead, "CASCADE", "RESTRICT"))
        return cascade

    # ── schemas ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_create_schema(self, exists: bool) -> exp.Expr:
        name = self._read_item("SCHEMA")
        self._read_end()
        return nodes.CreateSchema(this=name, exists=exists)

    def _read_alter_schema(self) -> exp.Expr:
        name = self._read_item("SCHEMA")
        if self._read_phrase(("RENAME TO", "SWAP WITH")) == "RENAME TO":
            return self._read_rename("SCHEMA", name)
        return self._read_swap("SCHEMA", name, self._read_item("SCHEMA"))

    # ── what can be changed of anything ───────────────────────────────────────────────────────────────────────────────

    def _read_rename(self, kind: str, name: exp.Expr) -> exp.Expr:
        new_name = self._read_identifier("a new name")
        if self._match(TokenType.DOT, advance=False):
            self.raise_error("the new name has one part: a rename does not move anything to another schema")
        self._read_end()
        return nodes.Rename(this=name, kind=kind, expression=new_name)

    def _read_swap(self, kind: str, name: exp.Expr, other: exp.Expr) -> exp.Expr:
        force = self._match_text_seq("FORCE")
        self._read_end(*() if force else ("FORCE",))
        return nodes.Swap(this=name, kind=kind, expression=other, force=force)

    def _read_set_or_reset(
        self, kind: str, name: exp.Expr, action: str, known: Mapping[str, Callable[[], exp.Expr]]
    ) -> exp.Expr:
        node = nodes.AlterOptions(this=name, kind=kind)
        if action == "SET":
            node.set("settings", self._read_options(known))
        else:
            seen: set[str] = set()
            node.set("reset", self._read_list(lambda: self._read_reset(known, seen)))
        self._read_end()
        return node

    def _read_reset(self, known: Mapping[str, Callable[[], exp.Expr]], seen: set[str]) -> exp.Var:
        option = self._read_option_name(known, seen)
        listed = {**TABLE_OPTIONS, **SOURCE_SETTINGS}.get(option.name)
        if listed and listed.preposition:
            self._match_text_seq(listed.preposition)
        return option

    def _read_alter_system(self) -> exp.Expr:
        action = self._read_phrase(("SET", "RESET"))
        name = self._read_identifier("the name of a setting")
        value = None
        if action == "SET":
            if not self._match(TokenType.EQ) and not self._match_text_seq("TO"):
                self._expected("=")
            value = self._read_system_value()
        self._read_end()
        return nodes.AlterSystem(this=name, expression=value)

    def _read_system_value(self) -> exp.Expr:
        token = self._curr
        if self._match_texts(("TRUE", "ON")):
            return exp.Boolean(this=True).update_positions(token)
        if self._match_texts(("FALSE", "OFF")):
            return exp.Boolean(this=False).update_positions(token)
        what = "true, false, a string or a whole number"
        if token.token_type == TokenType.NUMBER:
            number = self._read_integer(what)
            return exp.Literal.string(number.name).update_positions(token)
        return self._read_string(what)

    def _read_comment(self) -> exp.Expr:
        self._read_words("ON")
        kind = self._read_choice(COMMENTED)
        node = self._read_column_of() if kind == "COLUMN" else nodes.CommentOn(this=self._read_item(kind), kind=kind)
        self._read_words("IS")
        if not self._match_text_seq("NULL"):
            node.set("expression", self._read_string("a comment in single quotes or NULL"))
        self._read_end()
        return node

    def _read_column_of(self) -> nodes.CommentOn:
        start = self._curr
        *names, column = (part.copy() for part in self._read_path("a column", "schema.table.column").expressions)
        if not names:
            self.raise_error(f"expected {listing(('table.column', 'schema.table.column'))}", start)
        table = exp.Table(this=names[-1], db=names[0] if len(names) > 1 else None)
        return nodes.CommentOn(this=table, kind="COLUMN", column=identifier(column.name))
