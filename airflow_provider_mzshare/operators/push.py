"""The operator that pushes records into a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from airflow.sdk import Context

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator

TASK_BATCH = "airflow {{ ti.dag_id }} {{ ti.run_id }} {{ ti.task_id }} {{ ti.map_index }}"


class PushOperator(MzShareOperator):
    """Push records into a source that was made ``FROM JOURNAL``. They are durable, and count once, when the task ends.

    A retry, and a task that is cleared, takes nothing twice: the records are sent under an id of their own, and under
    the same id they have to be the same. Give ``records``, ``produce`` or ``file``.

    :param source: the source's name. (templated)
    :param records: an iterable of bytes or texts (values), or of dictionaries with ``value`` and maybe ``key``,
        ``headers``, ``timestamp``; an Arrow table of such columns; or what another task has returned. (templated)
    :param produce: a function that is called with the context, and returns such records.
    :param file: one record a line; a path, or a URI of an object store. (templated)
    :param file_format: ``lines``: a line is a value. ``jsonl``: it is an object of key, value, headers and timestamp.
    :param batch: the id; the default is the task's in this run of its DAG. None: without one, so a retry may take
        records twice. (templated)
    :param partition: of the source; default: the first that nobody else pushes into. (templated)
    """

    template_fields: Sequence[str] = (
        "source", "records", "file", "batch", "partition", *MzShareOperator.template_fields,
    )  # fmt: skip
    operator_extra_links = (StatusLink(),)

    def __init__(
        self,
        *,
        source: str,
        records: Iterable[Any] | None = None,
        produce: Callable[[Context], Iterable[Any]] | None = None,
        file: str | None = None,
        file_format: Literal["lines", "jsonl"] = "lines",
        batch: str | None = TASK_BATCH,
        partition: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source, self.records, self.produce = source, records, produce
        self.file, self.file_format = file, file_format
        self.batch, self.partition = batch, partition

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns how many messages are acknowledged, how many of them had been taken before (``repeated``), and where
        they are: the ``ranges`` of offsets.
        """
        from airflow_provider_mzshare.hooks.pushing import messages, partition_number

        if sum(given is not None for given in (self.records, self.produce, self.file)) != 1:
            raise TerminalError("give records, produce or file, one of them")
        records = self.produce(context) if self.produce else self.records
        with messages(records, self.file, self.file_format) as found:
            pushed = self.hook.push(
                self.source, found, batch=self.batch or None, partition=partition_number(self.partition)
            )
        self.log.info(
            "%d messages are in source %s, %d of them were before", pushed.messages, self.source, pushed.repeated
        )
        return {**asdict(pushed), "ranges": [asdict(one) for one in pushed.ranges]}
