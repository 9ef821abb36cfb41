"""Next steps for users, as commands to paste: names may hold quotes of either kind."""

from __future__ import annotations

import shlex

from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.core.ticklog import tombstones
from airflow_provider_mzshare.core.ticklog.table_states import TRUNCATED

_PAST_A_TRUNCATION = (
    "this table from a new source: of a topic that has one partition, or of this one with START OFFSET behind the "
    "truncation in each partition. RESUME and RESNAPSHOT would stop at it again"
)


def sql(statement: str) -> str:
    return f"mzshare sql {shlex.quote(statement)}"


def command(verb: str, name: str) -> str:
    return f"mzshare {verb} {shlex.quote(name)}"


def start(source: tuple[str, str]) -> str:
    """For a source, or a backfill of it, that nothing has started; all who say so say it like this."""
    return command("start", str(QualifiedName(*source)))


def become_live(name: str) -> str:
    """For a table that is not there yet."""
    return f"{command('wait', name)} --for live"


def heal(name: str, reason: str | None) -> str:
    """For a table that has stalled, or whose new generation has. :param reason: why."""
    if reason is not None and reason.startswith(tombstones.REASON):
        return f"{sql(f'ALTER TABLE {name} RESNAPSHOT')}, which reads it anew; RESUME cannot bring back a missed delete"
    if reason is not None and reason.startswith(TRUNCATED):
        return _PAST_A_TRUNCATION
    return f"{sql(f'ALTER TABLE {name} RESUME')}, when the cause is gone; {command('logs', name)} shows more"


def resnapshot(name: str) -> str:
    """For a table of which something is damaged: what it had is written anew from its source."""
    return f"{sql(f'ALTER TABLE {name} RESNAPSHOT')}; {command('check', name)} shows all damage"


def reason_of(error: str) -> str:
    """An error as an app notes it, without its next step."""
    return error.partition(". Try: ")[0]


def noted(error: str, name: str) -> tuple[str, str]:
    """Reason and hint from an error as an app notes it: one line, with its own next step at the end."""
    reason, _, step = error.partition(". Try: ")
    logs = command("logs", name)
    return reason, f"{step}, or {logs}" if step else logs
