"""The facts that a statement is planned from. Before a plan is executed, it is compared with them. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any, TypeVar, cast

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state, lock_source
from airflow_provider_mzshare.control.catalog.objects import flags, items
from airflow_provider_mzshare.control.catalog.objects.lookup import output_of
from airflow_provider_mzshare.control.catalog.objects.lookup_many import find_all
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.errors import StalePlan

T = TypeVar("T")


class Facts:
    """The catalog as one transaction sees it before it writes. Each fact is looked up once.

    If a statement is planned and executed in one transaction, both use the same facts: nothing is looked up twice, and
    nothing can have changed. To execute an older plan, new facts are looked up, which show what has changed since.

    :param locks: take the lock of the namespace now, and of each source when its state is asked for, until the
        transaction ends. Without locks a plan can be made in a read-only transaction, but not executed.
    """

    def __init__(self, session: Session, *, locks: bool = True) -> None:
        self.session, self._locks = session, locks
        self._known: dict[Hashable, Any] = {}
        if locks:
            # Take this lock before any source's lock, as everywhere: a later statement of the transaction may need it.
            items.lock_namespace(session)

    def once(self, key: Hashable, look: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = look()
        return cast("T", self._known[key])

    # ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def look_up(self, names: Collection[items.Name]) -> None:
        """Look up many names with one query."""
        missing = {name for name in names if ("named", name) not in self._known}
        if missing:
            found = find_all(self.session, missing)
            self._known |= {("named", name): found.get(name) for name in missing}

    def named(self, name: items.Name) -> items.Item | None:
        return self.once(("named", name), lambda: items.find(self.session, name))

    def table(self, name: items.Name) -> items.TableItem:
        """The table of this name; for an old-style source that has the rows itself, its output."""
        item = self.named(name)
        if isinstance(item, items.SourceItem):
            source_id = item.id
            item = self.once(("output", source_id), lambda: output_of(self.session, source_id)) or item
        return items.as_table(name, item)

    def check_same(self, what: str, name: items.Name, was: items.Item | None) -> None:
        """Raise StalePlan unless the name still belongs to the same item, or is still free."""
        is_now = self.named(name)
        if (is_now and is_now.id) != (was and was.id):
            raise StalePlan(what, [f"the name was {_bearer(was)}, and is {_bearer(is_now)} now"])

    # ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def is_on(self, flag: str) -> bool:
        return self.once(("flag", flag), lambda: flags.is_on(self.session, flag))

    def source(self, source_id: ItemId) -> items.SourceItem:
        return self.once(("source", source_id), lambda: items.get_source_item(self.session, source_id))

    def state(self, source_id: ItemId) -> SourceState:
        """The source's state; with ``locks``, read after the source's lock was taken."""
        find = lock_source if self._locks else get_source
        return self.once(("state", source_id), lambda: load_state(self.session, find(self.session, source_id)))


def _bearer(item: items.Item | None) -> str:
    return "nobody's" if item is None else f"that of {item.kind} {item.id}"
