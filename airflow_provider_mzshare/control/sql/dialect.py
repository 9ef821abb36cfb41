"""The sqlglot dialect ``mzshare``: PostgreSQL's words, our statements only."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.control.sql.generator import MzShareGenerator
from airflow_provider_mzshare.control.sql.parser import MzShareParser


class MzShare(Postgres):
    class Tokenizer(Postgres.Tokenizer):
        # No token may swallow the rest of a statement as text.
        COMMANDS: ClassVar[set[TokenType]] = set()
        # One kind of string and of quoted name, so that scanning.py and sqlglot agree on where each ends.
        BIT_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        BYTE_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        UNICODE_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS = tokens.Tokenizer.SINGLE_TOKENS
        VAR_SINGLE_TOKENS: ClassVar[set[str]] = set()

    Parser = MzShareParser
    Generator = MzShareGenerator
