"""The operator that reads tables and views: a few rows or a count for other tasks, or a file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from airflow_provider_mzshare.core import arguments
from airflow_provider_mzshare.errors import NotReadable, TerminalError
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_mzshare.control.lifecycle.read_table import Query

MAX_ROWS = 1_000


class ReadTableOperator(MzShareOperator):
    """Read a table, a view or a source's progress now, or as of a time or a tick: the same answer for ever.

    :param table: its name, ``[schema.]name``. (templated)
    :param columns: only these. (templated)
    :param as_of: milliseconds since 1970. (templated)
    :param tick: a tick's number. (templated)
    :param errors: the records that could not be decoded, instead.
    :param system_columns: with tick, partition and offset of each row.
    :param count: return only how many rows there are.
    :param require_live: fail if the table, or a table of the view, is not live: not all of its rows are there. The
        task is retried if a backfill brings the table up, but not if the table is stalled. False: the log says so. As
        of a time or a tick an answer is final, and this has no effect.
    :param max_rows: fail if there are more rows than this, because XCom is not made for them. It has no effect with
        ``count`` and ``file``.
    :param file: write the rows here, as ``.parquet``, ``.csv`` or ``.json`` (one object a line); a path, or a URI of an
        object store. The file appears only when it is complete. (templated)
    :param file_format: needed if the file's name does not show it. (templated)
    """

    template_fields: Sequence[str] = (
        "table", "columns", "as_of", "tick", "file", "file_format", *MzShareOperator.template_fields,
    )  # fmt: skip
    operator_extra_links = (StatusLink(),)

    def __init__(
        self,
        *,
        table: str,
        columns: Sequence[str] | None = None,
        as_of: int | str | None = None,
        tick: int | str | None = None,
        errors: bool = False,
        system_columns: bool = False,
        count: bool = False,
        require_live: bool = True,
        max_rows: int = MAX_ROWS,
        file: str | None = None,
        file_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table, self.columns, self.as_of, self.tick = table, columns, as_of, tick
        self.errors, self.system_columns, self.count = errors, system_columns, count
        self.max_rows, self.file, self.file_format = max_rows, file, file_format
        self.require_live = require_live

    def perform(self, context: Context) -> Any:
        """Returns the rows, their count, or ``{"file": …, "rows": …}``."""
        from airflow_provider_mzshare.cli.render import plain
        from airflow_provider_mzshare.control.lifecycle.read_table import Query
        from airflow_provider_mzshare.hooks.exports import export, file_format
        from airflow_provider_mzshare.storage.collections.values import python_rows

        if self.count and self.file:
            raise TerminalError("give count or file, not both")
        if self.count:
            return self.hook.count(self.table, errors=self.errors, **self._when())
        query = Query(
            columns=self.columns or None,
            errors=self.errors,
            with_system_columns=self.system_columns,
            limit=None if self.file else self.max_rows + 1,
            ordered=True,
        )
        if self.file:
            chosen = file_format(self.file, self.file_format)
            with self._open(query) as found:
                return {"file": self.file, "rows": export(found, self.file, chosen)}
        with self._open(query) as found:
            rows = [row for batch in found for row in python_rows(batch)]
        if len(rows) > self.max_rows:
            raise NotReadable(
                f"table {self.table} has more than the {self.max_rows} rows that may be returned",
                hint="a file, count, or a larger max_rows",
            )
        return plain(rows)

    def _open(self, query: Query) -> AbstractContextManager[pa.RecordBatchReader]:
        return self.hook.open(self.table, query, **self._when())

    def _when(self) -> dict[str, Any]:
        as_of, tick = _number("as_of", self.as_of), _number("tick", self.tick)
        return {"as_of_ms": as_of, "tick": tick, "not_live": self.not_live(self.require_live)}


def _number(what: str, value: int | str | None) -> int | None:
    """A number, also as text, because a template renders to text; None if it is empty."""
    if value is None or value in ("", "None"):
        return None
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        raise TerminalError(f"{what} must be a whole number, not {value!r}") from None
    return arguments.whole(what, number)
