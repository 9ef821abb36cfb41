"""The places of records: what each kind of source calls them, and what in them is compared with positions.

Travels to Spark's executors. Standard library only: whoever opens a catalog needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_mzshare.core.positions import Position

Lane = int | str
"""One of the lanes of a position, as the records name it: Kafka's partition 0. Positions have its text."""


@dataclass(frozen=True)
class PlaceColumn:
    """:param given: what it is called in the records that a connector gives.
    :param name: what it is called in a collection; begins with ``_mz_``.
    :param type: ``integer``, ``bigint``, or ``numeric(p,0)`` for numbers that 64 bits do not hold; ``text`` for a lane.
    """

    given: str
    name: str
    type: str

    @property
    def is_wide(self) -> bool:
        """Whether its numbers may need more than 64 bits."""
        return self.type.startswith("numeric")


@dataclass(frozen=True)
class Place:
    """Where a record is upstream: an ordered tuple that is the same however often the record is read.

    :param columns: in the order of the tuple.
    :param counted: the column, as given, that is compared with a position: a record whose number is lower lies before.
    :param lane: the column, as given, that names the lane of a position that ``counted`` is of; None where there is one
        lane, which positions call ``only_lane``.
    :param per_record: how far apart the numbers of two records are, roughly. Does not travel.
    :param show: a number of a position as people know it: ``0/16B3748``. Does not travel.
    """

    columns: tuple[PlaceColumn, ...]
    counted: str
    lane: str | None = None
    only_lane: str = "0"
    per_record: int = field(default=1, compare=False)
    show: Callable[[int], str] = field(default=str, compare=False, repr=False)

    @cached_property
    def given(self) -> tuple[str, ...]:
        return tuple(column.given for column in self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in a collection, after the tick."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def stored(self) -> tuple[tuple[str, str], ...]:
        """Names and types in a collection."""
        return tuple((column.name, column.type) for column in self.columns)

    def column(self, given: str) -> PlaceColumn:
        return next(column for column in self.columns if column.given == given)

    @cached_property
    def within_lane(self) -> tuple[PlaceColumn, ...]:
        """The columns that identify a record within its lane."""
        return tuple(column for column in self.columns if column.given != self.lane)

    def lane_of(self, name: str) -> Lane:
        """A lane that a position names, as the records name it."""
        return int(name) if self.lane is not None and self.column(self.lane).type != "text" else name

    def in_lane(self, lane: Lane, at: Sequence[Any]) -> tuple[Any, ...]:
        """The whole place of a record of a lane; ``at`` is what tells it apart there."""
        rest = iter(at)
        return tuple(lane if column.given == self.lane else next(rest) for column in self.columns)

    def tell(self, at: Sequence[Any]) -> str:
        """``partition 0, offset 17``"""
        told = (self.show(int(v)) if c.given == self.counted else v for c, v in zip(self.columns, at, strict=True))
        return ", ".join(f"{name} {value}" for name, value in zip(self.given, told, strict=True))

    def shown(self, position: Position) -> dict[str, str]:
        """A position as people write it; empty if they write its numbers."""
        return {} if self.show is str else {lane: self.show(number) for lane, number in position.entries}

    def to_plain(self) -> dict[str, Any]:
        """As it travels in a plan."""
        columns = [asdict(column) for column in self.columns]
        return {"columns": columns, "counted": self.counted, "lane": self.lane, "only_lane": self.only_lane}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Place:
        return cls(**{**plain, "columns": tuple(PlaceColumn(**column) for column in plain["columns"])})


PARTITIONED = Place(
    columns=(
        PlaceColumn("partition", "_mz_partition", "integer"),
        PlaceColumn("offset", "_mz_offset", "bigint"),
    ),
    lane="partition",
    counted="offset",
)
"""Of an upstream that numbers its records, partition by partition."""
