"""Syntax tree nodes of our own statements; they hold what was written, never what it means."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Option(exp.Expression):
    """``TRIGGER INTERVAL '1 second'``: the option's words, and its value."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Include(exp.Expression):
    """``OFFSET AS o``: a metadata word, and the column's name if one was given."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}


class CreateSource(exp.Expression):
    """``expressions`` are the upstream's options, ``settings`` those of ``WITH``."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "exists": False, "kind": True, "connection": True, "expressions": True, "settings": False,
    }  # fmt: skip


class CreateTable(exp.Expression):
    """``expressions`` are the column definitions."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "exists": False, "expressions": False, "source": True, "reference": False, "format": True,
        "include": False, "envelope": False, "settings": False,
    }  # fmt: skip


class AlterSource(exp.Expression):
    """One of ``settings`` (SET) and ``reset`` (RESET, option words) is given."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "settings": False, "reset": False}


class AlterTable(exp.Expression):
    """``action`` is RESUME or RESNAPSHOT."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "action": True}


class DropItem(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "exists": False, "cascade": False}


class ShowItems(exp.Expression):
    """``this`` is SOURCES or TABLES."""


class ShowCreate(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": False}
