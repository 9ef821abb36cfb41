"""What a commit's metadata say of its rows, and what the catalog is told of a commit. Touches no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.state import Done, Written
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.errors import BadCollection
from airflow_provider_mzshare.storage.fanout.hashing import FIRST, row_hash
from airflow_provider_mzshare.storage.fanout.results import MemberResult


def counted(member: Member, rows: int = 0, hash_sum: int = 0) -> dict[str, str]:
    """What a commit's metadata say of its rows."""
    return {"mz_rows": str(rows), "mz_hash": f"{hash_sum:032x}", "mz_hash_version": str(member.hash_version)}


def counted_of(member: Member, files: MemberResult, role: str) -> dict[str, str]:
    """The same of what the pass has written, and how much it has read for that."""
    noted = counted(member, files.rows(role), files.hash(role))
    if files.received is not None:
        # After a crash these numbers are taken from the commit: the records need not be read again.
        noted |= {"mz_messages": str(files.received.messages), "mz_bytes": str(files.received.bytes)}
    return noted


def written_as(collection_id: CollectionId, version: int, metadata: Mapping[str, str]) -> Written:
    """From the log entry itself: after a replay it says what is in the collection, not what was read again."""
    mz_timestamp = metadata["mz_timestamp"]
    rows = int(metadata["mz_rows"])
    return Written(
        collection_id,
        version,
        rows=rows,
        hash=metadata["mz_hash"],
        hash_version=int(metadata.get("mz_hash_version", FIRST)),
        tick=int(metadata["mz_tick"]),
        mz_timestamp=int(mz_timestamp),
        first_timestamp=int(metadata.get("mz_first_timestamp", mz_timestamp)),
        folded=int(metadata.get("mz_events", rows)) - rows,
        messages=int(metadata["mz_messages"]) if "mz_messages" in metadata else None,
        bytes=int(metadata.get("mz_bytes", 0)),
    )


def done(member: Member, written: Iterable[Written], *, without_effect: int = 0) -> Done:
    """:param without_effect: records that changed nothing, so that no commit has counted them."""
    commits = tuple(written)
    for commit in commits:
        if row_hash(commit.hash_version).version != member.hash_version:
            problem = f"a commit has row hashes of version {commit.hash_version}, all others of {member.hash_version}"
            raise BadCollection(commit.collection_id, problem)
    return Done(
        written=commits,
        rows=sum(commit.rows for commit in commits if commit.collection_id == member.data),
        errors=sum(commit.rows for commit in commits if commit.collection_id == member.errors),
        folded=sum(commit.folded for commit in commits) + without_effect,
    )
