"""Checks on the tokens of a query: limits before it is parsed, and after it that sqlglot has lost no text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, zip_longest

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql.scanning import refuse, shown

MAX_QUERY_TOKENS = 5_000
MAX_QUERY_BRACKETS = 24

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)
_NOT_AFTER_COMMA = (*_CLOSE, TokenType.FROM, TokenType.COMMA)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ONE_QUANTITY = re.compile(r"\s*\+?(?P<count>-?\d+(\.\d+)?)\s*[a-z]*\s*", re.ASCII)


def check_tokens(sql: str, tokens: Sequence[Token]) -> None:
    """Limits of size and depth, and two kinds of text that sqlglot would ignore. Raises StatementError."""
    if len(tokens) > MAX_QUERY_TOKENS:
        refuse(sql, tokens[0].start, f"the query has more than {MAX_QUERY_TOKENS:,} words and signs")
    depth = 0
    for token, after in zip_longest(tokens, tokens[1:]):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MAX_QUERY_BRACKETS:
            refuse(sql, token.start, f"brackets in a query are nested more than {MAX_QUERY_BRACKETS} deep")
        if token.token_type == TokenType.COMMA and (after is None or after.token_type in _NOT_AFTER_COMMA):
            refuse(sql, token.start, "nothing comes after this comma")
        if token.token_type == TokenType.NUMBER:
            _check_number(sql, token, after)


def _check_number(sql: str, token: Token, after: Token | None) -> None:
    joined = after is not None and after.token_type == TokenType.VAR and after.start == token.end + 1
    if joined or not _NUMBER.fullmatch(token.text):
        end = after.end if joined and after is not None else token.end
        refuse(sql, token.start, f"{shown(sql[token.start : end + 1])} is not a number")


def check_kept(sql: str, tokens: Sequence[Token], printed: Sequence[Token]) -> None:
    """Check that every string of the query is in its print too, in upper or lower case, as a string or a keyword.

    Raises StatementError. For example, sqlglot reads ``INTERVAL '1 day 02:00'`` as one day.
    """
    kept = {token.text.lower() for token in printed}
    for before, token in pairwise(tokens):
        if token.token_type != TokenType.STRING or token.text.lower() in kept:
            continue
        if before.token_type != TokenType.INTERVAL:
            refuse(sql, token.start, f"this string cannot be stored at this place: '{shown(token.text)}'")
        quantity = _ONE_QUANTITY.fullmatch(token.text.lower())
        if not quantity or not any(text.startswith(quantity["count"]) for text in kept):
            refuse(sql, token.start, f"this interval cannot be stored as it is; write '{shown(token.text)}'::interval")
