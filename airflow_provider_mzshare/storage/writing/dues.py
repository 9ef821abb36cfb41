"""What is to be written for a member, and what its collections hold of it already. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.state import Written
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.storage.collections.commit import FileWritten
from airflow_provider_mzshare.storage.fanout.plan import EVENTS, MemberPlan
from airflow_provider_mzshare.storage.fanout.results import MemberResult


@dataclass(frozen=True)
class Standing:
    """A collection as a group of ticks was planned upon it.

    :param stored: the time of its newest tick.
    :param after: the tick of the group up to which it is complete; 0 when it has none of them.
    :param found: commits in it that the catalog has not heard of.
    """

    stored: int | None = None
    after: int = 0
    found: tuple[Written, ...] = ()


@dataclass(frozen=True)
class Due:
    """A member that is to be written.

    :param plan: what the pass has to do for it.
    :param forced: collections that are committed to even without rows.
    """

    member: Member
    plan: MemberPlan
    forced: frozenset[CollectionId]
    standings: Mapping[CollectionId, Standing] = field(default_factory=dict)

    def standing(self, collection_id: CollectionId) -> Standing:
        return self.standings.get(collection_id, Standing())


def own_files(due: Due, files: MemberResult, written_at: float) -> dict[CollectionId, list[FileWritten]]:
    """By collection, the files that the pass has written for it."""
    member, plan = due.member, due.plan
    folders = {"errors": "", "data": f"{EVENTS}/" if plan.keys else ""}
    return {
        collection_id: [FileWritten(folders[role] + f.path, f.size, f.stats, written_at) for f in files.files[role]]
        for role, collection_id in (("errors", member.errors), ("data", member.data))
    }
