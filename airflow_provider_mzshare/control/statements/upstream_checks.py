"""Asks upstreams before statements run: can the source be read, what does it offer, is its history still there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from airflow_provider_mzshare.connectors.base import Compaction, ReferenceInfo, Upstream
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import output_of
from airflow_provider_mzshare.control.catalog.objects.lookup_many import find_all
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import name_pair
from airflow_provider_mzshare.control.statements.foreseen import ForeseenNames, Made
from airflow_provider_mzshare.control.statements.legacy.outputs import check_shape
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.core.ids import ItemId, is_item_id
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.errors import NameTaken, UnknownItem, UpstreamChanged

_WITHOUT_HISTORY = "CREATE TABLE … WITH (SNAPSHOT = false), which begins at now, or a new source of the same topic"
References = tuple[ReferenceInfo, ...]


S = TypeVar("S", bound=sql.Plain, covariant=True)


@dataclass(frozen=True)
class Checked(Generic[S]):
    """A statement with what its upstream said, before any transaction was opened."""

    statement: S
    explained: bool = False
    """EXPLAIN: say what the statement would do, and do nothing."""
    incarnation: str = ""
    start: Position | None = None
    """The start of a new source, or of one without tables: retention may have removed records since it was stored."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Mean bytes of a record by partition, if samples were taken."""
    references: References | None = None
    """What the source offers; None if it was not asked, for example because the object exists already."""
    source_id: ItemId | None = None
    """The source that was asked; None for a source that the same transaction creates."""
    gone: Position | None = None
    """Where history that is not all there begins, if the table is to be filled with what is left."""
    compaction: Compaction | None = None
    """How the upstream compacts, if a keyed table depends on it."""

    @property
    def kept_seconds(self) -> float | None:
        """For how long an upstream that compacts keeps deletes."""
        return None if self.compaction is None else self.compaction.kept_ms / 1000


class Checks:
    """:param looks: take samples of the records that are to be read, for an estimate; it takes about a second."""

    def __init__(self, catalog: Catalog, connections: ConnectionStore, *, looks: bool) -> None:
        self._catalog, self._connections, self._looks = catalog, connections, looks
        self._names = ForeseenNames()
        self._freeing = False
        """True once a statement may drop more than it names: then a name that is taken now may be free later."""
        self._asked: dict[tuple[ItemId, Position], Mapping[str, float]] = {}
        self._offered: dict[ItemId, References] = {}
        self._opened: dict[ItemId, Upstream] = {}
        self._found: dict[items.Name, items.Item | None] = {}
        self._states: dict[ItemId, SourceState] = {}
        self._starts: dict[ItemId, Position] = {}
        self._compactions: dict[ItemId, Compaction | None] = {}
        self._makes_keyed = False
        """Whether the script makes a keyed table."""
        self._closing = ExitStack()

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def run(self, statements: Sequence[sql.Statement]) -> Iterator[Checked[Any]]:
        self._look_up(statements)
        self._makes_keyed = any(map(_makes_keyed, statements))
        for statement in statements:
            if isinstance(statement, sql.Explain):
                yield self._check(statement.statement, explained=True)
            else:
                checked = self._check(statement, explained=False)
                self._note(checked)
                yield checked

    def _note(self, checked: Checked[Any]) -> None:
        statement = checked.statement
        if isinstance(statement, sql.CreateSource):
            if checked.start is not None:
                self._names.make(statement.name, Made(checked.references, checked.compaction))
        elif isinstance(statement, (sql.CreateTable, sql.CreateView)):
            if self._present(statement.name) is None:
                self._names.make(statement.name)
        else:
            self._names.note(statement)
            self._freeing = self._freeing or isinstance(statement, (sql.DropItem, sql.DropSubsources, sql.DropSchema))

    def _check(self, statement: sql.Plain, *, explained: bool) -> Checked[Any]:
        if isinstance(statement, sql.CreateSource):
            return self._new_source(statement, explained)
        if isinstance(statement, sql.CreateTable):
            return self._new_table(statement, explained)
        if isinstance(statement, sql.AlterTable):
            return self._altered_table(statement, explained)
        if isinstance(statement, sql.AddSubsources):
            return self._new_subsources(statement, explained)
        if isinstance(statement, sql.RefreshReferences):
            return self._refreshed(statement, explained)
        return Checked(statement, explained)

    # ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _new_source(self, statement: sql.CreateSource, explained: bool) -> Checked[sql.CreateSource]:
        if statement.spec.legacy is not None:
            check_shape(statement.name, statement.spec, statement.spec.legacy.shape)
        present = None if self._freeing else self._present(statement.name)
        if present is not None and not statement.if_not_exists:
            raise NameTaken(present.display, present.kind, "source")
        if present is not None or isinstance(self._names.behind(statement.name), Made):
            return Checked(statement, explained)  # nothing is created: an upstream that is away does not matter
        with open_upstream(self._connections, statement.spec, journals=journals_of(self._catalog)) as upstream:
            found = upstream.inspect(kind_of(statement.spec).start(statement.spec))
            compaction = upstream.compaction() if self._makes_keyed else None
            references = upstream.references()
            incarnation = found.info.incarnation
            return Checked(statement, explained, incarnation, found.start, references=references, compaction=compaction)

    def _refreshed(self, statement: sql.RefreshReferences, explained: bool) -> Checked[sql.RefreshReferences]:
        asked = statement.source
        name = QualifiedName("public", asked) if isinstance(asked, str) else asked
        if isinstance(made := self._names.behind(name), Made):
            return Checked(statement, explained, references=made.references)
        source = self._present(name)
        if source is None and isinstance(asked, str) and is_item_id(asked):
            with self._catalog.read() as session:
                source = items.get_live_item(session, ItemId(asked))
        if not isinstance(source, items.SourceItem):
            raise UnknownItem("source", str(asked), source.kind if source else None)
        return Checked(statement, explained, references=self._references(source), source_id=source.id)

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _new_table(self, statement: sql.CreateTable, explained: bool) -> Checked[sql.CreateTable]:
        made, is_keyed = self._names.behind(statement.source), _makes_keyed(statement)
        if isinstance(made, Made):
            compaction = made.compaction if is_keyed else None
            return Checked(statement, explained, references=made.references, compaction=compaction)
        source = self._present(statement.source)
        is_taken = self._present(statement.name) is not None and not self._freeing
        if not isinstance(source, items.SourceItem) or is_taken:
            return Checked(statement, explained)
        state = self._state(source.id)
        asked = Checked(statement, explained, references=self._references(source), source_id=source.id)
        asked = replace(asked, compaction=self._compaction(source) if is_keyed else None)
        if is_untouched(state):
            start = self._first_start(source)
            return replace(asked, incarnation=source.incarnation if start is not None else "", start=start)
        arrival = arrival_plans.create(state, str(statement.name), snapshot=statement.snapshot)
        return replace(asked, sizes=self._ask(source, state, arrival, looks=self._looks or explained))

    def _first_start(self, source: items.SourceItem) -> Position | None:
        """A source that began at the earliest record: look again where that is now. Asked once for all its tables."""
        start = kind_of(source.spec).start(source.spec)
        if start.mode != "earliest":
            return None
        if source.id not in self._starts:
            upstream = self._upstream(source)
            upstream.check_identity(source.incarnation)
            self._starts[source.id] = upstream.resolve_start(start)
        return self._starts[source.id]

    def _altered_table(self, statement: sql.AlterTable, explained: bool) -> Checked[sql.AlterTable]:
        table = self._present(statement.name)
        with self._catalog.read() as session:
            if isinstance(table, items.SourceItem):
                table = output_of(session, table.id)  # an old-style source that has the rows itself
            if not isinstance(table, items.TableItem):
                return Checked(statement, explained)
            source = items.get_source_item(session, table.source_id)
        state = self._state(source.id)
        arrival = alter(state, table, statement)
        gone = self._gone(source, arrival) if statement.force else None
        asked = arrival if gone is None else replace(arrival, position=arrival.position.join(gone))
        sizes = self._ask(source, state, asked, looks=self._looks or explained)
        compaction = self._compaction(source) if state.tables[table.id].keyed else None
        return Checked(statement, explained, sizes=sizes, source_id=source.id, gone=gone, compaction=compaction)

    def _new_subsources(self, statement: sql.AddSubsources, explained: bool) -> Checked[sql.AddSubsources]:
        made = self._names.behind(statement.source)
        if isinstance(made, Made):
            return Checked(statement, explained, references=made.references)
        source = self._present(statement.source)
        if not isinstance(source, items.SourceItem):
            return Checked(statement, explained)
        state = self._state(source.id)
        arrival = arrival_plans.create(state, str(statement.source), snapshot=True)
        sizes = self._ask(source, state, arrival, looks=self._looks or explained)
        references = self._references(source)
        return Checked(statement, explained, sizes=sizes, references=references, source_id=source.id)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(
        self, source: items.SourceItem, state: SourceState, arrival: Arrival, *, looks: bool
    ) -> Mapping[str, float]:
        """Is all that the table has to read still there? Asked once for all tables that begin at the same place."""
        if arrival.way != "backfill":
            return {}
        asked = (source.id, arrival.position)
        if asked not in self._asked:
            upstream = self._upstream(source)
            upstream.check_identity(source.incarnation)
            try:
                upstream.check_history(arrival.position)
            except UpstreamChanged as gone:
                message = f"table {arrival.table!r} cannot get its history: {gone.message}"
                raise UpstreamChanged(gone.reason, message, hint=_without_history(arrival)) from None
            self._asked[asked] = upstream.record_sizes(arrival.position, state.upper) if looks else {}
        return self._asked[asked]

    def _gone(self, source: items.SourceItem, arrival: Arrival) -> Position | None:
        """Where the upstream begins now, unless the table can have all of its history."""
        begin = self._upstream(source).begin_offsets()
        return None if begin <= arrival.position else begin

    def _references(self, source: items.SourceItem) -> References:
        """With the right to read them; asked once for all statements of the script that need it."""
        if source.id not in self._offered:
            upstream = self._upstream(source)
            upstream.check_readable()
            self._offered[source.id] = upstream.references()
        return self._offered[source.id]

    def _compaction(self, source: items.SourceItem) -> Compaction | None:
        if source.id not in self._compactions:
            self._compactions[source.id] = self._upstream(source).compaction()
        return self._compactions[source.id]

    def _upstream(self, source: items.SourceItem) -> Upstream:
        """The upstream, opened once for all questions."""
        if source.id not in self._opened:
            opened = open_upstream(
                self._connections, source.spec, source.incarnation, journals=journals_of(self._catalog)
            )
            self._opened[source.id] = self._closing.enter_context(opened)
        return self._opened[source.id]

    def _present(self, name: QualifiedName) -> items.Item | None:
        behind = self._names.behind(name)
        if not isinstance(behind, QualifiedName):
            return None
        pair = name_pair(behind)
        if pair not in self._found:
            with self._catalog.read() as session:
                self._found[pair] = items.find(session, pair)
        return self._found[pair]

    def _look_up(self, statements: Sequence[sql.Statement]) -> None:
        """Look up the names of all new tables and their sources with one query: there may be thousands."""
        plain = [one.statement if isinstance(one, sql.Explain) else one for one in statements]
        new = [one for one in plain if isinstance(one, sql.CreateTable)]
        names = {name_pair(name) for one in new for name in (one.name, one.source)}
        if names:
            with self._catalog.read() as session:
                found = find_all(session, names)
            self._found = {name: found.get(name) for name in names}

    def _state(self, source_id: ItemId) -> SourceState:
        """The state at the first look. It is read again behind the source's lock before anything is decided."""
        if source_id not in self._states:
            with self._catalog.read() as session:
                self._states[source_id] = load_state(session, get_source(session, source_id))
        return self._states[source_id]


def _makes_keyed(statement: sql.Statement) -> bool:
    """Does a statement make a table whose rows change?"""
    plain = statement.statement if isinstance(statement, sql.Explain) else statement
    return isinstance(plain, sql.CreateTable) and not envelope_named(plain.envelope).appends


def _without_history(arrival: Arrival) -> str:
    if arrival.action == "create":
        return _WITHOUT_HISTORY
    again = hints.sql(f"ALTER TABLE {arrival.table} RESNAPSHOT FORCE")
    return f"{again}, which fills it with what is left: rows whose records are gone are lost"


def is_untouched(state: SourceState) -> bool:
    """No table and no tick yet: its start may still move."""
    return not state.tables and state.last is None and not state.pending


def alter(state: SourceState, table: items.TableItem, statement: sql.AlterTable) -> Arrival:
    if statement.action == "resume":
        return arrival_plans.resume(state, table.id, str(statement.name))
    return arrival_plans.resnapshot(state, table.id, str(statement.name), start_tick=table.start_tick)
