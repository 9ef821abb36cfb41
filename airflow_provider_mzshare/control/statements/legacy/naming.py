"""Names that old-style statements give by themselves: they must be free, or one clear error says what to write."""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import name_pair
from airflow_provider_mzshare.control.statements.legacy.outputs import default_progress
from airflow_provider_mzshare.control.statements.legacy.problems import OutputNameTaken
from airflow_provider_mzshare.control.statements.legacy.texts import name_of
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.errors import TerminalError


def check_free(session: Session, name: QualifiedName, wanted: str, *, hint: str) -> None:
    """:param wanted: what is to bear the name."""
    taken = items.find(session, name_pair(name))
    if taken is not None:
        raise OutputNameTaken(str(name), taken.kind, wanted, hint=hint)


def progress_name(source: QualifiedName, asked: LegacySpec) -> QualifiedName:
    if asked.progress is not None:
        return name_of(asked.progress, source.schema)
    name = default_progress(source)
    if name is None:
        raise TerminalError(
            f"the name of source {source} is too long to add _progress to it", hint="EXPOSE PROGRESS AS another name"
        )
    return name
