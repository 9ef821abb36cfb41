"""Operators about tables: made, healed, filled anew, dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator

if TYPE_CHECKING:
    from airflow_provider_mzshare.hooks.definitions import Columns, Includes


class _CreateOperator(MzShareOperator):
    operator_extra_links = (StatusLink(),)

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source

    def create(self, context: Context, tables: Sequence[Mapping[str, Any]]) -> list[str]:
        results = self.hook.create_tables(self.source, tables)
        for result in results:
            self.log.info(result.message)
        names = [result.name for result in results if result.name]
        self.publish(context, names)
        return names


class CreateTablesFromSourceOperator(_CreateOperator):
    """Define tables of a source, all or none. Those that have missed some of it share one backfill.

    The same definition again changes nothing; another one under the same name fails and is not retried.

    :param source: the source's name. (templated)
    :param tables: for each a mapping with ``name``, and as needed ``columns``, ``format``, ``include``,
        ``reference``, ``snapshot``, ``options``, ``key_format``, ``key_columns``, ``primary_key``, ``envelope`` and
        ``inline_errors``, as for :class:`CreateTableFromSourceOperator`. (templated)
    """

    template_fields: Sequence[str] = ("source", "tables", *MzShareOperator.template_fields)
    template_fields_renderers = {"tables": "py"}  # noqa: RUF012

    def __init__(self, *, tables: Sequence[Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tables

    def perform(self, context: Context) -> list[str]:
        """Returns the tables' full names."""
        return self.create(context, self.tables)


class CreateTableFromSourceOperator(_CreateOperator):
    """Define one table of a source, as :class:`CreateTablesFromSourceOperator` does.

    :param table: the table's name, ``[schema.]name``. (templated)
    :param source: the source's name. (templated)
    :param columns: ``"id bigint, note text"`` or ``[{"name": "id", "type": "bigint"}]``; none: the whole record in the
        one column ``data``. (templated)
    :param format: ``json``, ``text`` or ``bytes``; ``none`` where the source has columns of its own. (templated)
    :param include: metadata columns: ``"offset, key"`` or ``[{"what": "offset", "name": "o"}]``. (templated)
    :param reference: the part of the source to export, a name or a list of its parts (``["auction", "bids"]``);
        default: the only one it has, such as its topic. (templated)
    :param snapshot: False: begin where the source is now, without a backfill. (templated)
    :param options: ``{"on_decode_error": "stop", "retain_history": "7 days"}``; ``text_columns`` and
        ``exclude_columns``, as ``"a, b"`` or ``["a", "b"]``, where the source has columns of its own. (templated)
    :param envelope: ``none``: each record is a row. ``upsert``: a record sets the row of its key, and one without a
        value takes it away. Then the key is among the columns, by ``include`` or ``key_columns``. ``debezium``: a
        record says how a row has changed; the key is ``primary_key`` or ``key_columns``. (templated)
    :param key_format: how the key is decoded; default: it is text, or bytes where ``format`` is that. (templated)
    :param key_columns: columns that the key is decoded into, written as ``columns`` are; they come before those of
        ``include``, which has no ``key`` then. (templated)
    :param primary_key: of ``debezium``: which of ``columns`` make the key, ``"region, id"`` or a list. (templated)
    :param inline_errors: of ``upsert``: the name of a column that says why a record's value cannot be decoded;
        default: such records are in the table's errors. (templated)
    """

    template_fields: Sequence[str] = (
        "table", "source", "columns", "format", "include", "reference", "snapshot", "options", "envelope", "key_format",
        "key_columns", "primary_key", "inline_errors", *MzShareOperator.template_fields,
    )  # fmt: skip

    def __init__(
        self,
        *,
        table: str,
        columns: Columns = (),
        format: str = "json",
        include: Includes = (),
        reference: str | Sequence[str] | None = None,
        snapshot: bool | str = True,
        options: Mapping[str, Any] | None = None,
        envelope: str = "none",
        key_format: str | None = None,
        key_columns: Columns = (),
        primary_key: str | Sequence[str] = (),
        inline_errors: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table, self.columns, self.format, self.include = table, columns, format, include
        self.reference, self.snapshot, self.options = reference, snapshot, options
        self.envelope, self.key_format, self.key_columns = envelope, key_format, key_columns
        self.primary_key, self.inline_errors = primary_key, inline_errors

    def perform(self, context: Context) -> list[str]:
        definition = {
            "name": self.table,
            "columns": self.columns,
            "format": self.format,
            "include": self.include,
            "reference": self.reference,
            "snapshot": self.snapshot,
            "options": self.options,
            "envelope": self.envelope,
            "key_format": self.key_format,
            "key_columns": self.key_columns,
            "primary_key": self.primary_key,
            "inline_errors": self.inline_errors,
        }
        return self.create(context, [definition])


class _TableOperator(MzShareOperator):
    """:param table: the table's name, ``[schema.]name``. (templated)"""

    template_fields: Sequence[str] = ("table", *MzShareOperator.template_fields)
    operator_extra_links = (StatusLink(),)

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table


class ResumeTableOperator(_TableOperator):
    """Let a stalled table go on where it stopped: a backfill brings it up to its source, then it is cut over.

    A table that is live, or that a backfill brings up already, is unchanged. ``StartBackfillOperator`` starts the app.

    :param table: the table's name, ``[schema.]name``. (templated)
    """

    def perform(self, context: Context) -> str:
        """Returns the table's status."""
        return self.hook.resume_table(self.table)


class ResnapshotTableOperator(_TableOperator):
    """Fill a table again from its start, beside the rows it has; readers see the old rows until the cutover.

    If a new generation is being filled already, that one goes on. ``StartBackfillOperator`` starts the app.

    :param table: the table's name, ``[schema.]name``. (templated)
    """

    def perform(self, context: Context) -> str | None:
        """Returns the backfill's id."""
        return self.hook.resnapshot_table(self.table)


class DropTableOperator(_TableOperator):
    """Drop a table. One that does not exist is no error.

    :param table: the table's name, ``[schema.]name``. (templated)
    """

    def perform(self, context: Context) -> str:
        result = self.hook.drop_table(self.table)
        self.log.info(result.message)
        return result.message
