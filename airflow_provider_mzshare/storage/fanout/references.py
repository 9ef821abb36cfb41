"""Whose rows a batch holds, where a source has several references, and whether it is still what a table was made of."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.records import MARKS, REFERENCE
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan


class ReferenceChanged(Exception):
    """The table upstream is no longer as it was when ours was made."""


@dataclass(frozen=True)
class Said:
    """What the schema of a batch says of its rows.

    :param reference: empty for records, which say nothing.
    """

    reference: str
    marks: bytes | None

    @classmethod
    def of(cls, schema: pa.Schema) -> Said:
        said = schema.metadata or {}
        return cls(said.get(REFERENCE, b"").decode(), said.get(MARKS))

    @cached_property
    def _marks(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self.marks or b"{}")
        return found

    def check(self, member: MemberPlan) -> None:
        """Raise ReferenceChanged if a column that the member takes is gone or has another type, or if rows that go away
        are no longer told by the member's key. Columns that were added do no harm.
        """
        if self.marks is None or not member.upstream:
            return
        name, columns, keys = (self._marks[part] for part in ("name", "columns", "keys"))
        for column, kind in member.upstream:
            if column not in columns:
                raise ReferenceChanged(f'{name} has no column "{column}" any more; {_ADVICE}')
            if columns[column] != kind:
                raise ReferenceChanged(f'column "{column}" of {name} has got another type; {_ADVICE}')
        self._check_key(member, name, keys)

    def _check_key(self, member: MemberPlan, name: str, keys: Collection[str]) -> None:
        lost = [column for column in member.keys if column not in keys]
        if lost:
            why = f'"{lost[0]}" is no longer part of its replica identity'
            raise ReferenceChanged(f"{name} does not tell any more which rows go away, because {why}; {_ADVICE}")


_ADVICE = "drop the table here and create it anew"
