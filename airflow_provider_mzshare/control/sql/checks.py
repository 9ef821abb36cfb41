"""Checks of one statement by itself, for SQL, operators and forms alike. Nothing is looked up.

SQL reports an error with its place in the text, operators with their argument. The message is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_mzshare.connectors.kind import ConnectorKind
from airflow_provider_mzshare.connectors.registry import own_place_names
from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.sql.column_types import to_sql
from airflow_provider_mzshare.control.sql.names import check_name
from airflow_provider_mzshare.control.sql.options import COLUMN_OPTIONS
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE, PLAIN_COLUMN, RESERVED, TICK
from airflow_provider_mzshare.envelopes.base import Envelope, wraps_rows
from airflow_provider_mzshare.envelopes.registry import choices as envelope_choices
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.envelopes.registry import sql_word as envelope_word
from airflow_provider_mzshare.formats.registry import FORMATS, any_of, format_named, sql_word, words_with_columns

_NOT_IN_DELTA = frozenset(" ,;{}()\n\t=")
MAX_COLUMNS = 1_000
MAX_REFERENCE_PARTS = 3
INLINE = "VALUE DECODING ERRORS = INLINE"
_INSTEAD_IN_KEYS = {"real": "numeric", "double": "numeric", "jsonb": "text"}
"""Types that no key may have: -0 equals 0 and NaN has many forms, and so have numbers in JSON."""
_KEY_OF_CHANGES = (
    "PRIMARY KEY (column, …) NOT ENFORCED in the column list, or INCLUDE KEY (column type, …) with KEY FORMAT JSON"
)
_NOT_UNDECODED = ", and so an upstream whose records are decoded; a load generator cannot have it"
_ADVICE = {
    "key_columns": "; leave one of them out",
    "inline_errors": "; INLINE AS gives the column of errors another name",
}
"""What to do about a column that occurs twice, by the clause of the second one."""


@dataclass(frozen=True)
class Clause:
    """The wrong part of a statement. :param index: which entry of a list. :param part: which part of the entry."""

    name: str
    index: int | None = None
    part: str = ""

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"


class Misfit(ValueError):
    """A statement whose parts do not fit together. :param clause: the part that is wrong."""

    def __init__(self, message: str, clause: Clause) -> None:
        self.clause = clause
        super().__init__(message)


# ── how an export is decoded ──────────────────────────────────────────────────────────────────────────────────────────


def check_output(output: values.Output) -> None:
    """The clauses of a table, or of an old-style source with one output, go together."""
    decoder = format_named(output.format)
    if output.primary_key:
        _check_takes_primary_key(output)
    if decoder.own_columns:
        _check_undecoded(output)
    _check_types(output)
    _check_key(output)
    check_columns(output, has_record=not decoder.own_columns)
    if output.primary_key:
        _check_primary_key(output)
    if output.envelope != DEFAULT_ENVELOPE:
        _check_envelope(output)
    if output.inline_errors is not None and envelope_named(output.envelope).appends:
        keyed = [envelope_word(each.name) for each in _written_envelopes() if not each.appends and not wraps_rows(each)]
        instead = f"with ENVELOPE {envelope_word(output.envelope)}, what cannot be decoded is in the table's errors"
        raise Misfit(f"{INLINE} needs ENVELOPE {any_of(keyed)}; {instead}", Clause("inline_errors"))


def _written_envelopes() -> list[Envelope]:
    """Those that a statement may name."""
    return [envelope_named(name) for name in envelope_choices()]


def _check_undecoded(output: values.Output) -> None:
    """No clause says how to decode what needs no decoding."""
    own = "without it the columns are the upstream's own"
    if output.include or output.key_columns:
        raise Misfit(f"INCLUDE needs FORMAT: {own}", Clause("include" if output.include else "key_columns", 0))
    if output.key_format:
        raise Misfit(f"KEY FORMAT needs VALUE FORMAT: {own}", Clause("key_format"))
    if output.inline_errors is not None:
        raise Misfit(f"{INLINE} needs FORMAT: {own}, and there is nothing to decode", Clause("inline_errors"))


def _check_types(output: values.Output) -> None:
    decoder = format_named(output.format)
    if output.columns and not decoder.takes_columns:
        wanted = f"a column list needs FORMAT {any_of(words_with_columns())}"
        has = f"FORMAT {sql_word(output.format)} has the one column {PLAIN_COLUMN}"
        raise Misfit(f"{wanted}; {has}", Clause("columns", 0, "name"))
    for number, column in enumerate(output.columns):
        if why := decoder.refuses(column.type):
            raise Misfit(f"column {column.name}: {why}", Clause("columns", number, "type"))


def _check_key(output: values.Output) -> None:
    """The key's format has something to decode, and can decode it."""
    whole = [number for number, item in enumerate(output.include) if item.what == "key"]
    value = f"FORMAT {sql_word(output.format)}"
    if output.key_format and not whole and not output.key_columns:
        columns = " (column type, …)" if wraps_rows(envelope_named(output.envelope)) else ""
        instead = "the key is PRIMARY KEY, so" if output.primary_key else f"add INCLUDE KEY{columns}, or"
        key = f"KEY FORMAT {sql_word(output.key_format)}"
        raise Misfit(f"{key} decodes nothing: {instead} write {value} alone", Clause("key_format"))
    if not output.key_columns:
        return
    if whole:
        raise Misfit("INCLUDE KEY is given twice: as a whole and as columns", Clause("include", whole[0]))
    decoder = format_named(output.key_format) if output.key_format else None
    if decoder is None or not decoder.takes_columns:
        has = f"KEY FORMAT {sql_word(decoder.name)}" if decoder else f"{value} alone"
        wanted = f"columns of the key need KEY FORMAT {any_of(words_with_columns())}"
        raise Misfit(f"{wanted}; with {has} the key is one column", Clause("key_columns", 0, "name"))
    for number, column in enumerate(output.key_columns):
        if why := decoder.refuses(column.type):
            raise Misfit(f"column {column.name}: {why}", Clause("key_columns", number, "type"))


def _check_envelope(output: values.Output) -> None:
    """The table has what its envelope needs. Where the columns are the upstream's own, the key is its reference's."""
    envelope, word = envelope_named(output.envelope), envelope_word(output.envelope)
    included = [item.what for item in output.include]
    if output.key_columns or output.primary_key or format_named(output.format).own_columns:
        included.append("key")
    if wraps_rows(envelope):
        _check_wrapped(output, word)
    if missing := envelope.lacks(format=output.format, include=included):
        raise Misfit(f"ENVELOPE {word} needs {missing}", Clause("envelope"))
    if envelope.appends:
        return
    if included.count("key") > 1:
        second = [number for number, item in enumerate(output.include) if item.what == "key"][-1]
        raise Misfit(f"INCLUDE KEY is given twice: with ENVELOPE {word} a table has one key", Clause("include", second))
    for number, column in enumerate(output.key_columns):
        if why := unfit_for_key(column.name, column.type):
            raise Misfit(why, Clause("key_columns", number, "type"))
    for number, item in enumerate(output.include):
        if item.what == "key" and (why := unfit_for_key(item.name, key_type(output))):
            raise Misfit(why, Clause("include", number))


def _check_wrapped(output: values.Output, word: str) -> None:
    """The envelope has the row inside of the value: so the row has columns, and its key is some of them."""
    for clause, name in (("key_format", output.key_format), ("format", output.format)):
        if name and not format_named(name).takes_changes:
            known = any_of([w for each in FORMATS if (w := sql_word(each)) and format_named(each).takes_changes])
            words = f"{'KEY ' if clause == 'key_format' else ''}FORMAT {known}"
            others = _NOT_UNDECODED if format_named(name).own_columns else ""
            place = Clause("key_format" if clause == "key_format" else "envelope")
            raise Misfit(f"ENVELOPE {word} needs {words}{others}", place)
    if not output.columns:
        raise Misfit(f"ENVELOPE {word} needs a column list: the columns of the table upstream", Clause("envelope"))
    whole = [number for number, item in enumerate(output.include) if item.what == "key"]
    if whole:
        instead = "PRIMARY KEY: leave INCLUDE KEY out" if output.primary_key else f"columns: {_KEY_OF_CHANGES}"
        raise Misfit(f"with ENVELOPE {word} the key is {instead}", Clause("include", whole[0]))
    if output.inline_errors is not None:
        wrong = f"{INLINE} does not go with ENVELOPE {word}: what cannot be decoded is in the table's errors"
        raise Misfit(wrong, Clause("inline_errors"))


def _check_takes_primary_key(output: values.Output) -> None:
    """Only an envelope that has the row inside of the value takes the key from there."""
    envelope = envelope_named(output.envelope)
    if wraps_rows(envelope):
        return
    wrapping = any_of([envelope_word(each.name) for each in _written_envelopes() if wraps_rows(each)])
    instead = "the key is the upstream's own" if format_named(output.format).own_columns else "the key is INCLUDE KEY"
    if envelope.appends:
        instead = "there is no key"
    wrong = f"PRIMARY KEY needs ENVELOPE {wrapping}; with ENVELOPE {envelope_word(output.envelope)} {instead}"
    raise Misfit(wrong, Clause("primary_key"))


def _check_primary_key(output: values.Output) -> None:
    """It names columns of the list, and is the only key."""
    if output.key_columns:
        raise Misfit("the key is given twice: by PRIMARY KEY and by INCLUDE KEY", Clause("key_columns", 0, "name"))
    types = {column.name: column.type for column in output.columns}
    for number, name in enumerate(output.primary_key):
        clause = Clause("primary_key", number)
        if name not in types:
            raise Misfit(f"PRIMARY KEY: there is no column {name} in the list", clause)
        if name in output.primary_key[:number]:
            raise Misfit(f"PRIMARY KEY names column {name} twice", clause)
        if why := unfit_for_key(name, types[name]):
            raise Misfit(why, clause)


def key_type(output: values.Output) -> str:
    """Of the key as one column."""
    return format_named(output.key_format).plain_type if output.key_format else format_named(output.format).key_type


def unfit_for_key(name: str, type_name: str) -> str | None:
    """Why no key may have a column of this type; None: it may."""
    instead = _INSTEAD_IN_KEYS.get(type_name)
    if instead is None:
        return None
    return f"column {name}: {to_sql(type_name)} cannot be in a key: equal values have several forms; take {instead}"


def check_columns(output: values.Output, *, has_record: bool = False) -> None:
    """Each name occurs once, in any case (Delta's names are case-insensitive), and is none of our system columns.

    :param has_record: if no columns are listed, the table has one column with the whole record.
    """
    named = list(_named_columns(output, has_record))
    if len(named) > MAX_COLUMNS:
        raise Misfit(f"{len(named):,} columns are too many: the limit is {MAX_COLUMNS:,}", named[MAX_COLUMNS][1])
    seen: dict[str, str] = {}
    for name, clause in named:
        _check_column_name(name, clause)
        if other := seen.get(name.lower()):
            case = "" if other == name else f", once as {other}: upper and lower case count as the same"
            raise Misfit(f"column {name} occurs twice{case}{_ADVICE.get(clause.name, '')}", clause)
        seen[name.lower()] = name


def _named_columns(output: values.Output, has_record: bool) -> Iterator[tuple[str, Clause]]:
    """In the order of the table's columns."""
    yield from ((column.name, Clause("columns", number, "name")) for number, column in enumerate(output.columns))
    if not output.columns and has_record:
        yield PLAIN_COLUMN, Clause("format")
    yield from ((each.name, Clause("key_columns", number, "name")) for number, each in enumerate(output.key_columns))
    yield from ((item.name, Clause("include", number, "name")) for number, item in enumerate(output.include))
    if output.inline_errors is not None:
        yield output.inline_errors, Clause("inline_errors", part="name")


def _check_column_name(name: str, clause: Clause) -> None:
    _check_name(name, "a column name", clause)
    if name.lower().startswith(RESERVED):
        system = ", ".join((TICK, *own_place_names()))
        raise Misfit(f"column {name}: names that begin with {RESERVED} are reserved ({system})", clause)
    if not _NOT_IN_DELTA.isdisjoint(name):
        raise Misfit(f'column "{name}": Delta does not allow blanks or ,;{{}}()= in a column name', clause)


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_table(table: values.CreateTable) -> None:
    """All checks that need neither the source nor its reference."""
    check_output(values.Output.of(table))
    for part in table.reference or ():
        _check_name(part, "a reference", Clause("reference"))
    if len(table.reference or ()) > MAX_REFERENCE_PARTS:
        raise Misfit("a reference has at most 3 parts, database.schema.name", Clause("reference"))
    check_once("column", _listed_columns(table.options))
    if table.options.get("deletion_vectors") is False and envelope_named(table.envelope).appends:
        word = envelope_word(table.envelope)
        wrong = f"DELETION VECTORS = false is for tables whose rows change; with ENVELOPE {word} no table has any"
        raise Misfit(wrong, Clause("deletion_vectors"))


def _listed_columns(options: Mapping[str, Any]) -> Iterator[tuple[str, Clause]]:
    """The columns that options name. ``check_once`` refuses a column that is named twice."""
    for option in COLUMN_OPTIONS.values():
        for number, name in enumerate(options.get(option.field, ())):
            yield name, Clause(option.field, number)


def check_once(what: str, listed: Iterator[tuple[str, Clause]]) -> None:
    seen: set[str] = set()
    for name, clause in listed:
        if name in seen:
            raise Misfit(f"{what} {name} is given twice", clause)
        seen.add(name)


def _check_name(name: str, what: str, clause: Clause) -> None:
    try:
        check_name(name, what)
    except ValueError as error:
        raise Misfit(str(error), clause) from None


# ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_upstream(
    kind: ConnectorKind[Any], variant: str | None, given: Collection[str], *, perhaps: Collection[str] = ()
) -> None:
    """Check that a source has all options that its kind requires, and no others.

    :param variant: in the words of SQL. :param given: the words of the options.
    :param perhaps: options whose values are not known yet. They may turn out to be empty.
    """
    known = [option for option in kind.options if variant is None or option.words in kind.variants.get(variant, ())]
    words = [option.words for option in known]
    for name in given:
        if name not in words:
            raise Misfit(f"there is no option {name} here; options are: {', '.join(words)}", Clause(name))
    for option in known:
        if option.words in given and option.excludes in given:
            raise Misfit(f"{option.excludes} and {option.words} cannot be used together", Clause(option.words))
        if option.required and option.words not in given and option.words not in perhaps:
            example = "'…'" if option.type in ("name", "text", "duration", "size") else "…"
            raise Misfit(f"a {kind.words} source needs {option.words} {example}", Clause(""))


def check_swap(swap: values.Swap) -> None:
    if swap.name == swap.other:
        raise Misfit(f"a {swap.kind} cannot be swapped with itself", Clause("other"))
