"""CREATE VIEW inside the caller's transaction, and views as text: in the names that things have now."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow, ViewRow
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import add_item, lock_namespace
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.control.views.columns import Columns, Typed, outputs
from airflow_provider_mzshare.control.views.resolving import print_current, resolve
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import NameTaken, SpecConflict

COMMAND = "CREATE VIEW"


def create_view(session: Session, checked: Checked[sql.CreateView], context: Context) -> Result:
    """The handler. The same definition again changes nothing, even if what the view reads has been renamed since."""
    statement = checked.statement
    lock_namespace(session)
    check_name(statement.name)
    present = lookup.find(session, name_pair(statement.name))
    if present is not None and (present.kind != "view" or not statement.if_not_exists):
        raise NameTaken(str(statement.name), present.kind, "view")
    query = resolve(session, statement.query)
    outputs(Typed(session).qualified(query))
    if isinstance(present, lookup.ViewItem):
        if present.query != query.text:
            raise SpecConflict(str(statement.name), f"it is {print_current(session, present.query)}")
        return done(COMMAND, statement.name, present.id, context.dry_run, "it exists")
    view_id = add_item(session, "view", name_pair(statement.name))
    session.execute(insert(ViewRow).values(id=view_id, query=query.text))
    for referenced in query.reads:
        session.execute(insert(DependencyRow).values(object_id=view_id, referenced_id=referenced))
    context.does("create view", str(statement.name))
    return done(COMMAND, statement.name, None if context.dry_run else view_id, context.dry_run)


def definition_of(session: Session, view: lookup.ViewItem) -> sql.CreateView:
    """The statement that would make it again, for SHOW CREATE."""
    return sql.CreateView(QualifiedName(*view.name), False, print_current(session, view.query))


def view_columns(session: Session, view: lookup.ViewItem) -> Columns:
    """Name to type, in order."""
    return Typed(session).columns_of(view.id)


def list_views(session: Session) -> Sequence[lookup.ViewItem]:
    """All that are not dropped, oldest first."""
    query = select(ItemRow.id).where(ItemRow.kind == "view", ItemRow.dropped_at.is_(None)).order_by(ItemRow.number)
    found = [lookup.get_item(session, ItemId(item_id)) for item_id in session.scalars(query)]
    return [item for item in found if isinstance(item, lookup.ViewItem)]
