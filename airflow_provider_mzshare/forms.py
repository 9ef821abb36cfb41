"""Trigger forms that define sources and tables: the fields, and the definitions that they make. For DAGs with one.

The fields of options come from the tables of options: a new option is asked for without a change here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import Param

from airflow_provider_mzshare.connectors.registry import find_kind
from airflow_provider_mzshare.control.sql.durations import format_duration
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS, TableSpec
from airflow_provider_mzshare.envelopes import registry as envelopes
from airflow_provider_mzshare.formats import registry as formats

FORMATS = formats.choices()
ENVELOPES = envelopes.choices()


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def table_params(
    *, columns: str | None = None, include: str | None = None, without: Collection[str] = ()
) -> dict[str, Param]:
    """The fields of a table, with these values to begin with.

    :param without: options that are not asked for.
    """
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
            description="How to decode records. none: the upstream has columns of its own.",
        ),
        **_key_params(),
        **{option.name: _param(option, _usual(option)) for option in _asked(without)},
    }


def _key_params() -> dict[str, Param]:
    """The fields of a table whose rows change."""
    return {
        "envelope": Param(
            DEFAULT_ENVELOPE,
            type="string",
            enum=list(ENVELOPES),
            title="Envelope",
            description="none: each record is a row. upsert: a record sets the row of its key, which must be included. "
            "debezium: a record says how a row has changed.",
        ),
        "key_format": _text(
            None, "Format of the key", "How the key is decoded, as json. Empty: text, or bytes where Format is bytes."
        ),
        "key_columns": _text(
            None,
            "Columns of the key",
            "name type, name type, … that the key is decoded into. Empty: key among the metadata columns is all of it.",
        ),
        "primary_key": _text(
            None, "Primary key", "With debezium: column, column, … of the columns above. Empty: the columns of the key."
        ),
        "inline_errors": _text(
            None,
            "Column of errors",
            "With upsert: a column that says why a value cannot be decoded. Empty: such records are in the errors.",
        ),
    }


def table_definition(name: str, *, without: Collection[str] = (), **more: Any) -> dict[str, Any]:
    """The table of these fields, for ``add_tables``, as templates.

    :param name: the table's name. :param more: parts of the definition that are not asked for in the form.
    """
    asked = {field: _template(field) for field in ("columns", "include", "format", *_key_params())}
    return {"name": name, **asked, "options": {one.name: _template(one.name) for one in _asked(without)}, **more}


def _asked(without: Collection[str]) -> list[Option]:
    return [option for option in TABLE_OPTIONS.values() if option.name not in without]


def _usual(option: Option) -> Any:
    """The value that the form shows at first."""
    value = TableSpec.model_fields[option.field].default
    if option.type == "duration":
        return format_duration(round(value * option.milliseconds))
    return None if option.type == "names" else value


# ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def source_params(kind: str, *, connection: str = "connection", begin: Mapping[str, Any]) -> dict[str, Param]:
    """The fields of a source of this kind.

    :param connection: what the field of its connection is called.
    :param begin: what some of the fields begin with, by the names of operators' arguments.
    """
    found = find_kind(kind)
    fields = {}
    if found.takes_connection:
        title, about = f"{found.title} connection", "The id of the Airflow connection to the upstream."
        fields[connection] = Param(begin.get(connection), type="string", minLength=1, title=title, description=about)
    if found.variants:
        fields[found.variant_field] = Param(
            begin.get(found.variant_field),
            type="string",
            enum=[words.lower().replace(" ", "_") for words in found.variants],
            title=found.variant_field.capitalize(),
        )
    return {**fields, **{option.name: _param(option, begin.get(option.name)) for option in found.options}}


def source_definition(kind: str, *, connection: str = "connection") -> dict[str, Any]:
    """The arguments of ``CreateSourceOperator`` from these fields, as templates."""
    found = find_kind(kind)
    names = [*([found.variant_field] if found.variants else []), *(option.name for option in found.options)]
    told: dict[str, Any] = {"kind": kind, "upstream": {name: _template(name) for name in names}}
    return {**told, "conn_id": _template(connection)} if found.takes_connection else told


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _param(option: Option, value: Any) -> Param:
    told: dict[str, Any] = {
        "title": option.title or option.words.capitalize(),
        "description": option.about.replace("`", "") or None,
    }
    if option.type == "boolean":
        return Param(value, type="boolean", **told)
    if option.type == "choice":
        return Param(value, type="string", enum=list(option.choices), **told)
    if option.required:
        return Param(value, type="string", minLength=1, **told)
    return Param(value, type=["null", "string"], **told)


def _text(default: str | None, title: str, description: str, **more: Any) -> Param:
    return Param(default, type=["null", "string"], title=title, description=description, **more)


def _template(field: str) -> str:
    """Empty if nothing was given; False is a value. ``params['keys']``, because ``params.keys`` is a method."""
    return f"{{{{ params['{field}'] if params['{field}'] is not none else '' }}}}"
