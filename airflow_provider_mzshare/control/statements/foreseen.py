"""Names as earlier statements of a script will leave them: upstreams are asked before any statement runs. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mzshare.connectors.base import Compaction, ReferenceInfo
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName


@dataclass(frozen=True)
class Made:
    """An object that the script itself creates; for a source, with what its upstream offers."""

    references: tuple[ReferenceInfo, ...] | None = None
    compaction: Compaction | None = None


class ForeseenNames:
    """What each name will mean: the object that has a name in the catalog now, a new object, or nothing."""

    def __init__(self) -> None:
        self._names: dict[QualifiedName, QualifiedName | Made | None] = {}
        self._schemas: dict[str, str | None] = {}

    def behind(self, name: QualifiedName) -> QualifiedName | Made | None:
        """The name to look up in the catalog; ``Made`` for a new object; None if the name will be free."""
        if name in self._names:
            return self._names[name]
        schema = self._schemas.get(name.schema, name.schema)
        return None if schema is None else QualifiedName(schema, name.name)

    def make(self, name: QualifiedName, made: Made | None = None) -> None:
        self._names[name] = made or Made()

    def note(self, statement: sql.Plain) -> None:
        """Record the effect of a statement that creates nothing."""
        if isinstance(statement, sql.DropItem):
            self._names[statement.name] = None
        elif isinstance(statement, sql.DropSchema):
            self._move_schemas({statement.name: None})
        elif isinstance(statement, sql.Rename):
            self._rename(statement)
        elif isinstance(statement, sql.Swap):
            self._swap(statement)

    def _rename(self, statement: sql.Rename) -> None:
        if isinstance(statement.name, QualifiedName):
            new = QualifiedName(statement.name.schema, statement.new_name)
            self._names |= {new: self.behind(statement.name), statement.name: None}
        else:
            self._move_schemas({statement.name: None, statement.new_name: statement.name})

    def _swap(self, statement: sql.Swap) -> None:
        one, other = statement.name, statement.other
        if isinstance(one, QualifiedName) and isinstance(other, QualifiedName):
            self._names |= {one: self.behind(other), other: self.behind(one)}
        else:
            self._move_schemas({str(one): str(other), str(other): str(one)})

    def _move_schemas(self, taken_from: dict[str, str | None]) -> None:
        """:param taken_from: for each schema, the schema whose objects it gets; None: it will have none."""
        before, schemas = dict(self._names), dict(self._schemas)
        self._names = {name: stands for name, stands in before.items() if name.schema not in taken_from}
        for schema, other in taken_from.items():
            self._schemas[schema] = None if other is None else schemas.get(other, other)
            self._names |= {QualifiedName(schema, n.name): s for n, s in before.items() if n.schema == other}
