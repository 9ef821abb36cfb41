"""Writes the tables of options in docs/reference/sql.md, from the options themselves: ``python -m tools.reference``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from airflow_provider_mzshare.connectors.registry import find_kind
from airflow_provider_mzshare.control.sql.durations import format_duration
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, TABLE_OPTIONS, SourceSettings, TableSpec

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "sql.md"
_VALUES = {
    "name": "'t'", "text": "'…'", "whole": "n", "signed": "n", "wholes": "(0, 10, 100)", "duration": "'duration'",
    "size": "'size'",    "names": "(column, …)",
}  # fmt: skip


def tables() -> dict[str, str]:
    """By the name that marks their place in the page."""
    named = ("kafka", "load_generator", "journal", "postgres")
    kafka, generators, journals, postgres = map(find_kind, named)
    return {
        "options of Kafka": _table(kafka.options, None),
        "options of load generators": _table(generators.options, generators.spec),
        "options of journals": _table(journals.options, journals.spec),
        "options of Postgres": _table(postgres.options, None),
        "settings of sources": _table(SOURCE_SETTINGS.values(), SourceSettings),
        "options of tables": _table(TABLE_OPTIONS.values(), TableSpec),
    }


def written(page: str) -> str:
    """The page with its tables as they are now."""
    for name, table in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        page, found = pattern.subn(lambda _, text=f"{begin}{table}{end}": text, page)
        if found != 1:
            raise SystemExit(f"the page has {found} places for the {name}")
    return page


def _table(options: Iterable[Option], model: type[BaseModel] | None) -> str:
    """:param model: whose fields have the defaults; none where there are none to tell."""
    lines = ["| option | default | meaning |", "|---|---|---|"] if model else ["| option | meaning |", "|---|---|"]
    for option in options:
        default = [_default(option, model)] if model else []
        lines.append(f"| {' | '.join([_written(option), *default, option.about])} |".replace("|  |", "| |"))
    return "".join(f"{line}\n" for line in lines)


def _written(option: Option) -> str:
    if option.type == "choice":
        first, *others = (f"'{choice.upper()}'" for choice in option.choices)
        return " or ".join([f"`{option.all_words} {first}`", *(f"`{other}`" for other in others)])
    if option.type == "boolean":
        return f"`{option.all_words} true` or `false`"
    return f"`{option.all_words} {_VALUES[option.type]}`"


def _default(option: Option, model: type[BaseModel]) -> str:
    if option.unset:
        return option.unset
    value = model.model_fields[option.field].default
    if option.type == "duration":
        return f"`'{format_duration(round(value * option.milliseconds))}'`"
    if option.type == "choice":
        return f"`'{value.upper()}'`"
    if option.type == "boolean":
        return f"`{str(value).lower()}`"
    return "" if option.type == "names" else str(value)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
