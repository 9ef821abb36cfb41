"""A source and all that is defined on it, as one value: what a migration starts from and what it ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from airflow_provider_mzshare.connectors.registry import AnySourceSpec
from airflow_provider_mzshare.control.catalog.database.object_models import ItemKind
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.core.specs import SourceSettings, Spec, TableSpec


class Item(Spec):
    """What every object has. Its id is for ever; kind and name may change."""

    id: str
    kind: ItemKind
    name: Name


class Source(Item):
    kind: ItemKind = "source"
    spec: AnySourceSpec
    settings: SourceSettings = SourceSettings()


class Table(Item):
    """A table, a subsource or a hidden output: all are tables of the source underneath."""

    kind: ItemKind = "table"
    spec: TableSpec


class Progress(Item):
    """An old-style name under which the source's progress is read."""

    kind: ItemKind = "progress"


class View(Item):
    """``query`` names what it reads by id, and ``reads`` lists these ids."""

    kind: ItemKind = "view"
    query: str
    reads: tuple[str, ...] = ()


class Comment(Spec):
    """A comment on a column of the object."""

    object_id: str
    column: str
    comment: str


class Definitions(Spec):
    source: Source
    tables: tuple[Table, ...] = ()
    output: str | None = None
    """The id of the table that the source itself stands for, while it is an old-style source of one output."""
    progress: Progress | None = None
    views: tuple[View, ...] = ()
    """The views that read the source or something defined on it directly."""
    comments: tuple[Comment, ...] = ()
    """On columns of what may change its id or be dropped: the source, its output, its progress name."""
    others: Mapping[str, Name] = Field(default_factory=dict)
    """The names of everything else that the views read, by id."""

    def items(self) -> Iterator[Item]:
        yield self.source
        yield from self.tables
        if self.progress:
            yield self.progress
        yield from self.views

    def item(self, item_id: str) -> Item | None:
        return next((item for item in self.items() if item.id == item_id), None)

    def names(self) -> dict[str, Name]:
        """The name that each id is known by; a hidden output is known by its source's name."""
        known = {**self.others, **{item.id: item.name for item in self.items()}}
        return {**known, self.output: self.source.name} if self.output else known

    @property
    def is_legacy(self) -> bool:
        return self.source.spec.legacy is not None
