"""Options of columns on an old-style source: finds those of one subsource, and gives them to it."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_mzshare.control.catalog.objects.definitions import Table
from airflow_provider_mzshare.control.statements.legacy.texts import parts_of
from airflow_provider_mzshare.core.specs import LegacySpec


def copied_options(legacy: LegacySpec, table: Table, *, only: bool) -> Table:
    """The subsource with the source's options on it; those it has already stay.

    :param only: the source has no other, so that options need not name the reference.
    """
    spec = table.spec
    reference = tuple(part for part in (spec.namespace, spec.reference) if part is not None)
    text = _merged(spec.text_columns, _columns_of(legacy.text_columns, reference, only))
    exclude = _merged(spec.exclude_columns, _columns_of(legacy.exclude_columns, reference, only))
    return table.model_copy(update={"spec": spec.model_copy(update={"text_columns": text, "exclude_columns": exclude})})


def _columns_of(options: Iterable[str], reference: tuple[str, ...], only: bool) -> list[str]:
    """``options`` are SQL: ``[[[database.]schema.]reference.]column``; what is written of the reference must agree."""
    found = []
    for option in options:
        *of, column = parts_of(option)
        if reference[-len(of) :] == tuple(of[-len(reference) :]) if of else only:
            found.append(column)
    return found


def _merged(present: tuple[str, ...], wanted: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*present, *wanted)))
