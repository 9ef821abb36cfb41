"""The grammar of a column list: names and types."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql.column_types import COLUMN_TYPES, DEFAULT_NUMERIC, base_type, to_sql
from airflow_provider_mzshare.control.sql.grammar import Reader
from airflow_provider_mzshare.control.sql.names import quote
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.core.schema import check_type


class ColumnGrammar(Reader):
    def _read_column(self) -> exp.Expr:
        return exp.ColumnDef(this=self._read_identifier("a column name"), kind=self._read_type())

    def _read_columns(self, node: exp.Expr, clause: str = "expressions") -> None:
        """``(column type, … [, PRIMARY KEY (column, …) NOT ENFORCED])``, if there is a list."""
        if not self._match(TokenType.L_PAREN, advance=False):
            return
        columns: list[exp.Expr] = []
        keys: list[exp.Expr] = []
        self._read_list(lambda: self._read_column_or_key(columns, keys))
        node.set(clause, columns)
        if keys:
            node.set("primary_key", keys[0])

    def _read_column_or_key(self, columns: list[exp.Expr], keys: list[exp.Expr]) -> None:
        if keys:
            self.raise_error("PRIMARY KEY comes last in the column list, and once")
        start = self._curr
        if columns and self._match(TokenType.PRIMARY_KEY):
            key = self._read_list(lambda: self._read_identifier("a column name"))
            if not self._match_text_seq("NOT", "ENFORCED"):
                self.raise_error(f"no key is enforced: write {_written(key)}", start)
            keys.append(exp.Tuple(expressions=key).update_positions(start))
            return
        columns.append(self._read_column())
        if self._match(TokenType.PRIMARY_KEY, advance=False):
            wanted = _written([columns[-1].this])
            self.raise_error(f"a key has a place of its own: write {wanted} at the end of the column list")

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


def _written(key: list[exp.Identifier]) -> str:
    """The clause of a key with these columns."""
    return f"PRIMARY KEY ({', '.join(quote(column.name) for column in key)}) NOT ENFORCED"
