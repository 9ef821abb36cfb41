"""ALTER SYSTEM SET and RESET, inside the caller's transaction."""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import flags, items
from airflow_provider_mzshare.control.catalog.objects.legacy_sources import legacy_objects
from airflow_provider_mzshare.control.definition_errors import BadValue, NotMigrated, UnknownSetting
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.answers import Result, done
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.upstream_checks import Checked


def alter_system(session: Session, checked: Checked[sql.AlterSystem], context: Context) -> Result:
    statement = checked.statement
    setting = flags.SETTINGS.get(statement.name)
    if setting is None:
        raise UnknownSetting(statement.name, tuple(flags.SETTINGS))
    try:
        value = setting.default if statement.value is None else setting.read(statement.value)
    except ValueError:
        raise BadValue(statement.name, statement.value, setting.wanted) from None
    items.lock_namespace(session)  # so nobody creates an old-style source between the check and the flag
    if statement.name == flags.FORCE_TABLES and value == "true":
        _check_migrated(session)
    before = flags.value_of(session, statement.name)
    flags.set_value(session, statement.name, value)
    context.does("set", statement.name, f"from {before} to {value}")
    return done("ALTER SYSTEM", statement.name, None, context.dry_run, value)


def _check_migrated(session: Session) -> None:
    left = [f"{one.kind} {one.name}" for one in legacy_objects(session)]
    if left:
        raise NotMigrated(flags.FORCE_TABLES, left)
