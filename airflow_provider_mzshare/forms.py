"""Trigger forms that define a table: the fields, and the definition that they make. For DAGs that have such a form."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from airflow_provider_mzshare.formats import registry

FORMATS = tuple(registry.FORMATS)


def table_params(*, columns: str | None = None, include: str | None = None) -> dict[str, Param]:
    """What a table is made of, with these to begin with."""
    return {
        "columns": _text(
            columns,
            "Columns",
            "name type, name type, … by the names of the records' fields. Empty: the whole record in one column, data.",
            format="multiline",
        ),
        "include": _text(include, "Metadata columns", "Any of partition, offset, timestamp, key. Empty: none."),
        "format": Param(
            "json",
            type="string",
            enum=list(FORMATS),
            title="Format",
            description="How records are decoded. none: the upstream has columns of its own.",
        ),
        "text_columns": _text(None, "Text columns", "Of an upstream with columns of its own: those to keep as text."),
        "exclude_columns": _text(None, "Columns to leave out", "Of an upstream with columns of its own."),
        "on_decode_error": Param(
            "record",
            type="string",
            enum=["record", "stop"],
            title="What cannot be decoded",
            description="record: it goes to the table's errors. stop: the table stalls.",
        ),
        "retain_history": Param(
            "1 day", type="string", title="History", description="How far back the table can be read, as 7 days."
        ),
    }


def table_definition(name: str, **more: Any) -> dict[str, Any]:
    """The table of these fields, for ``add_tables``, as templates.

    :param name: the table's name. :param more: parts of the definition that are not asked for in the form.
    """
    options = ("retain_history", "on_decode_error", "text_columns", "exclude_columns")
    asked = {field: f"{{{{ params.{field} or '' }}}}" for field in ("columns", "include", "format")}
    return {
        "name": name,
        **asked,
        "options": {option: f"{{{{ params.{option} or '' }}}}" for option in options},
        **more,
    }


def _text(default: str | None, title: str, description: str, **more: Any) -> Param:
    return Param(default, type=["null", "string"], title=title, description=description, **more)
