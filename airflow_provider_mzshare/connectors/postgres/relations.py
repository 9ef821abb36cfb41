"""The relations in force for a segment of the journal, as its prologue says them. Travels; standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_VARCHAR = 1043


@dataclass(frozen=True)
class RelationColumn:
    """:param oid: of its type. :param mod: of its type. :param key: whether it is sent of a row that goes away."""

    name: str
    oid: int
    mod: int
    key: bool


@dataclass(frozen=True)
class Relation:
    """A table upstream, as a Relation message says it. :param identity: ``d``, ``i``, ``f`` or ``n``."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]

    @property
    def marks(self) -> Mapping[str, object]:
        """What a table compares with how it was when it was made."""
        return {
            "name": f"{self.schema}.{self.name}",
            "columns": {column.name: type_mark(column.oid, column.mod) for column in self.columns},
            "keys": [column.name for column in self.columns if column.key or self.identity == "f"],
        }


def type_mark(oid: int, mod: int) -> str:
    """A column's type, so far as values depend upon it. A varchar that gets another length keeps its values."""
    return str(oid) if mod == -1 or oid == _VARCHAR else f"{oid}:{mod}"


@lru_cache(maxsize=64)
def relations_of(prologue: bytes) -> Mapping[int, Relation]:
    """By oid."""
    said = json.loads(prologue)
    if said["version"] != 1:
        raise ValueError("another version of mzshare has written the journal")
    return {each["oid"]: _relation(each) for each in said["relations"]}


def _relation(said: Mapping[str, object]) -> Relation:
    columns = tuple(
        RelationColumn(each["name"], each["type"], each["mod"], bool(each["key"]))
        for each in said["columns"]  # type: ignore[attr-defined]
    )
    return Relation(said["oid"], said["schema"], said["name"], said["identity"], columns)  # type: ignore[arg-type]
