"""Syntax tree nodes of our own statements; they hold what was written, never what it means."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

# ── parts of statements ───────────────────────────────────────────────────────────────────────────────────────────────


class Option(exp.Expression):
    """``TRIGGER INTERVAL '1 second'``: the option's words, and its value if it has one."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": False}


class Include(exp.Expression):
    """``OFFSET AS o``: a metadata word, and the column's name if one was given; of KEY perhaps column definitions."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False, "expressions": False}


class Inline(exp.Expression):
    """``(VALUE DECODING ERRORS INLINE AS e)``, with the column's name if one was given."""

    arg_types: ClassVar[dict[str, bool]] = {"alias": False}


class Path(exp.Expression):
    """``a.b.c``: names with dots between, a reference or a column of one."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Outputs(exp.Expression):
    """``this`` is ALL TABLES, SCHEMAS (``expressions`` are names) or TABLES (``expressions`` are subsources)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class Subsource(exp.Expression):
    """``reference [AS name]``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}


# ── CREATE ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class CreateSource(exp.Expression):
    """``expressions`` are the upstream's options, ``settings`` those of ``WITH``; from ``columns`` on it is old syntax.

    ``connection`` and ``variant`` are given as its kind needs.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "exists": False, "kind": True, "connection": False, "variant": False, "expressions": False,
        "settings": False, "columns": False, "key_format": False, "format": False, "include": False, "envelope": False,
        "inline": False, "outputs": False, "progress": False, "primary_key": False,
    }  # fmt: skip


class CreateTable(exp.Expression):
    """``expressions`` are the column definitions."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "exists": False, "expressions": False, "source": True, "reference": False, "key_format": False,
        "format": False, "include": False, "envelope": False, "inline": False, "settings": False, "primary_key": False,
    }  # fmt: skip


class CreateSubsource(exp.Expression):
    """``expressions`` are the column definitions."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False, "source": True, "settings": True}


class CreateView(exp.Expression):
    """``expression`` is the query."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "exists": False, "expression": True}


class CreateSchema(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "exists": False}


# ── ALTER ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class AlterOptions(exp.Expression):
    """One of ``settings`` (SET) and ``reset`` (RESET, option words) is given; ``kind`` is SOURCE or TABLE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "settings": False, "reset": False}


class AddSubsources(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True, "settings": False}


class DropSubsources(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True, "exists": False, "cascade": False}


class RefreshReferences(exp.Expression):
    """``id``: written as a word that may be an id."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "id": False}


class AlterTable(exp.Expression):
    """``action`` is RESUME or RESNAPSHOT, which ``force`` may follow."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "action": True, "force": False}


class Rename(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "expression": True}


class Swap(exp.Expression):
    """``force``: whatever state they are in."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "expression": True, "force": False}


class AlterSystem(exp.Expression):
    """Without ``expression`` it is RESET."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": False}


# ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class CommentOn(exp.Expression):
    """``column`` for the kind COLUMN, whose ``this`` is what has it; without ``expression`` it is NULL."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "column": False, "expression": False}


class DropItem(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "exists": False, "cascade": False}


class ShowItems(exp.Expression):
    """``this`` is SOURCES, TABLES, …"""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "schema": False}


class ShowCreate(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": False}


class Write(exp.Expression):
    """``verb`` is INSERT, UPDATE or DELETE; what it would write is not kept."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "verb": True}


class Explain(exp.Expression):
    pass
