"""What upstreams say to statements before they run: a source that can be read, a history that is still there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_mzshare.control import table_plans
from airflow_provider_mzshare.control.answers import kind_of, name_pair
from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.catalog.states import get_source, load_state
from airflow_provider_mzshare.control.sql import statements as sql
from airflow_provider_mzshare.control.table_plans import Arrival
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.errors import NameTaken, UpstreamChanged
from airflow_provider_mzshare.storage.connections import ConnectionStore
from airflow_provider_mzshare.storage.ticks.state import SourceState
from airflow_provider_mzshare.types.ids import ItemId
from airflow_provider_mzshare.types.positions import Position

_WITHOUT_HISTORY = "CREATE TABLE … WITH (SNAPSHOT = false), which begins at now, or a new source of the same topic"


@dataclass(frozen=True)
class Checked:
    """A statement with what its upstream said, before any transaction was opened."""

    statement: sql.Statement
    incarnation: str = ""
    start: Position | None = None
    """Where a new source begins, or a source still without tables: retention may have moved on since."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Mean bytes of a record by partition, where somebody looked."""


@dataclass
class _Names:
    """Names as earlier statements of the script will have left them."""

    made: set[sql.QualifiedName] = field(default_factory=set)
    gone: set[sql.QualifiedName] = field(default_factory=set)

    def note(self, statement: sql.Statement) -> None:
        if isinstance(statement, (sql.CreateSource, sql.CreateTable)):
            self.made.add(statement.name)
        elif isinstance(statement, sql.DropItem):
            self.made.discard(statement.name)
            self.gone.add(statement.name)


class Checks:
    """:param looks: take samples of the records that are to be read, for an estimate; it takes about a second."""

    def __init__(self, catalog: Catalog, connections: ConnectionStore, *, looks: bool) -> None:
        self._catalog, self._connections, self._looks = catalog, connections, looks
        self._names = _Names()
        self._asked: dict[tuple[ItemId, Position], Mapping[str, float]] = {}

    def run(self, statements: Sequence[sql.Statement]) -> Iterator[Checked]:
        for statement in statements:
            if isinstance(statement, sql.CreateSource):
                yield self._new_source(statement)
            elif isinstance(statement, sql.CreateTable):
                yield self._new_table(statement)
            elif isinstance(statement, sql.AlterTable):
                yield self._altered_table(statement)
            else:
                yield Checked(statement)
            self._names.note(statement)

    def _new_source(self, statement: sql.CreateSource) -> Checked:
        present = self._present(statement.name)
        if present is not None and not statement.if_not_exists:
            raise NameTaken(present.display, kind_of(present), "source")
        if present is not None or statement.name in self._names.made:
            return Checked(statement)  # nothing will be made, so a broker that is away is no reason to fail
        with open_upstream(self._connections, statement.spec) as upstream:
            found = upstream.inspect(statement.spec.start)
        return Checked(statement, found.info.incarnation, found.start)

    def _new_table(self, statement: sql.CreateTable) -> Checked:
        source = self._present(statement.source)
        if not isinstance(source, items.SourceItem) or self._present(statement.name) is not None:
            return Checked(statement)
        state = self._state(source.id)
        if is_untouched(state):
            return self._first_table(statement, source)
        arrival = table_plans.create(state, str(statement.name), snapshot=statement.snapshot)
        return Checked(statement, sizes=self._ask(source, state, arrival))

    def _first_table(self, statement: sql.CreateTable, source: items.SourceItem) -> Checked:
        """A source that began at the earliest record: look again where that is now."""
        if source.spec.start.mode != "earliest":
            return Checked(statement)
        with open_upstream(self._connections, source.spec) as upstream:
            upstream.check_identity(source.incarnation)
            return Checked(statement, source.incarnation, upstream.resolve_start(source.spec.start))

    def _altered_table(self, statement: sql.AlterTable) -> Checked:
        table = self._present(statement.name)
        if not isinstance(table, items.TableItem):
            return Checked(statement)
        with self._catalog.read() as session:
            source = items.get_source_item(session, table.source_id)
        state = self._state(source.id)
        return Checked(statement, sizes=self._ask(source, state, alter(state, table, statement)))

    def _ask(self, source: items.SourceItem, state: SourceState, arrival: Arrival) -> Mapping[str, float]:
        """Is all that the table has to read still there? Asked once for all tables that begin at the same place."""
        if arrival.way != "backfill":
            return {}
        asked = (source.id, arrival.position)
        if asked not in self._asked:
            with open_upstream(self._connections, source.spec) as upstream:
                upstream.check_identity(source.incarnation)
                try:
                    upstream.check_history(arrival.position)
                except UpstreamChanged as gone:
                    message = f"table {arrival.table!r} cannot get its history: {gone.message}"
                    raise UpstreamChanged(gone.reason, message, hint=_WITHOUT_HISTORY) from None
                self._asked[asked] = upstream.record_sizes(arrival.position, state.upper) if self._looks else {}
        return self._asked[asked]

    def _present(self, name: sql.QualifiedName) -> items.SourceItem | items.TableItem | None:
        if name in self._names.made or name in self._names.gone:
            return None
        with self._catalog.read() as session:
            return items.find(session, name_pair(name))

    def _state(self, source_id: ItemId) -> SourceState:
        with self._catalog.read() as session:
            return load_state(session, get_source(session, source_id))


def is_untouched(state: SourceState) -> bool:
    """No table and no tick yet: its start may still move."""
    return not state.tables and state.last is None and not state.pending


def alter(state: SourceState, table: items.TableItem, statement: sql.AlterTable) -> Arrival:
    if statement.action == "resume":
        return table_plans.resume(state, table.id, str(statement.name))
    return table_plans.resnapshot(state, table.id, str(statement.name), start_tick=table.start_tick)
