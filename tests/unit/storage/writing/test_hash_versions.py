"""The version of a hash stands beside it in every commit; sums of different versions are never taken together."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.errors import BadCollection, UnknownHashVersion
from airflow_provider_mzshare.storage.fanout import hashing
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from airflow_provider_mzshare.storage.writing.outcomes import counted, done, written_as
from tests.support.writers import MEMBER

TICK = {"mz_timestamp": "1700000000000", "mz_tick": "3"}


def test_a_commit_names_the_version_of_its_collection() -> None:
    noted = counted(dataclasses.replace(MEMBER, hash_version=1), 5, 255)
    assert noted == {"mz_rows": "5", "mz_hash": f"{255:032x}", "mz_hash_version": "1"}
    assert written_as(MEMBER.data, 1, {**TICK, **noted}).hash_version == 1


def test_a_commit_of_before_there_were_versions_is_of_the_first() -> None:
    written = written_as(MEMBER.data, 1, {**TICK, "mz_rows": "5", "mz_hash": "0" * 32})
    assert written.hash_version == 1
    assert done(MEMBER, [written]).rows == 5


def test_a_later_version_is_refused_by_its_number() -> None:
    later = {**TICK, **counted(dataclasses.replace(MEMBER, hash_version=7), 5, 255)}
    with pytest.raises(UnknownHashVersion, match="version 7"):
        done(MEMBER, [written_as(MEMBER.data, 1, later)])
    with pytest.raises(UnknownHashVersion, match="version 7"):
        member_plan("u1", MEMBER.spec, place=PARTITIONED, hash_version=7)


def test_two_versions_in_one_collection_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hashing.VERSIONS, 2, dataclasses.replace(hashing.row_hash(1), version=2))  # type: ignore[arg-type]
    other = {**TICK, **counted(dataclasses.replace(MEMBER, hash_version=2), 5, 255)}
    with pytest.raises(BadCollection, match="of version 2, all others of 1"):
        done(MEMBER, [written_as(MEMBER.data, 1, other)])
