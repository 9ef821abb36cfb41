"""Log entries and keyed collections on an S3 server that honours conditional puts; the server shows that it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections.log import entry_path
from airflow_provider_mzshare.storage.collections.vectors import puts
from tests.integration.delta.test_keyed_commits import adding
from tests.integration.delta.test_vectors import Walk
from tests.support.put_races import bare, content_of, entries, race
from tests.support.relay import Loss, Relay, relay
from tests.support.s3 import S3Server
from tests.support.tick_races import state_after, ticks

ROUNDS = [40, pytest.param(500, marks=pytest.mark.full(seconds=30))]


@pytest.fixture
def uri(s3: S3Server) -> str:
    return f"{s3.new_root()}/collection"


@pytest.fixture
def lossy(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A relay in front of the server, which this test's environment names."""
    with relay(s3.port) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


# ── the server by itself ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_bare_conditional_puts_the_server_takes_exactly_one(uri: str, rounds: int) -> None:
    store = from_url(uri)
    urls = [obstore.sign(store, "PUT", f"{each}", timedelta(hours=1)) for each in range(rounds)]
    found = race(bare, 2, rounds, urls, {"If-None-Match": "*"})
    for each, statuses in enumerate(zip(*found, strict=True)):
        assert statuses.count(200) == 1, f"round {each}: {statuses}"
        assert set(statuses) <= {200, 409, 412}
        assert bytes(obstore.get(store, f"{each}").bytes()) == content_of(statuses.index(200), each)
    assert min(answers.count(200) for answers in found) > 0, "they did not race"


# ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_two_writers_one_puts_the_entry_and_both_find_it_at_once(uri: str, rounds: int) -> None:
    found = race(entries, 2, rounds, uri)
    for each, answers in enumerate(zip(*found, strict=True)):
        assert sorted(answers) == [("put", True), ("refused", True)], f"round {each}"
        winner = answers.index(("put", True))
        assert bytes(obstore.get(from_url(uri), entry_path(each)).bytes()) == content_of(winner, each)
    assert puts.list_entries(uri, 0) == (tuple(range(rounds)), ())
    assert min(Counter(answer for answer, _ in answers)["put"] for answers in found) > 0, "they did not race"


@pytest.mark.parametrize("loss", ["request", "answer", "answer for an error"])
def test_an_entry_whose_answer_is_lost_is_sent_again_and_known_as_our_own(uri: str, lossy: Relay, loss: Loss) -> None:
    lossy.lose("PUT", loss)
    assert puts.put_entry(uri, 0, b"ours") == "put"
    assert lossy.seen("PUT") == 2
    assert puts.put_entry(uri, 0, b"another's") == "refused"


def test_an_entry_of_another_whose_refusal_is_lost_is_refused(uri: str, lossy: Relay) -> None:
    puts.put_entry(uri, 0, b"another's")
    lossy.lose("PUT", "answer")
    assert puts.put_entry(uri, 0, b"ours") == "refused"


def test_an_entry_that_is_never_answered_is_unclear_and_there(uri: str, lossy: Relay) -> None:
    lossy.lose("PUT", "answer", times=100)
    with pytest.raises(OSError, match="PUT"):
        puts.put_entry(uri, 0, b"ours")
    assert puts.list_entries(uri, 0) == ((0,), ())


def test_an_answer_that_is_there_while_what_stands_there_cannot_be_read_is_unclear(uri: str, lossy: Relay) -> None:
    puts.put_entry(uri, 0, b"another's")
    lossy.lose("GET", "request", times=100)
    with pytest.raises(OSError, match="GET"):
        puts.put_entry(uri, 0, b"ours")


def test_a_log_of_more_than_a_thousand_entries_is_listed_from_any_version(uri: str) -> None:
    store = from_url(uri)
    names = [entry_path(version) for version in range(1105)]
    more = ("00000000000000001000.checkpoint.parquet", "_last_checkpoint", "00000000000000001104.json.tmp")
    names += [f"_delta_log/{name}" for name in more]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: obstore.put(store, name, b"{}"), names))
    assert puts.list_entries(uri, 0) == (tuple(range(1105)), (1000,))
    assert puts.list_entries(uri, 1000) == (tuple(range(1000, 1105)), (1000,))
    assert puts.list_entries(uri, 1001) == (tuple(range(1001, 1105)), ())
    assert puts.list_entries(uri, 1105) == ((), ())


def test_a_store_without_conditional_puts_puts_nothing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    with pytest.raises(OSError, match="conditional put is disabled"):
        puts.put_entry(uri, 0, b"{}")
    puts._store.cache_clear()
    monkeypatch.delenv("AWS_CONDITIONAL_PUT")
    assert puts.list_entries(uri, 0) == ((), ())


def test_files_need_no_folder_and_no_flush(uri: str) -> None:
    puts.write_file(uri, "_change_data/a.parquet", b"bytes")
    puts.flush(uri, ["_change_data/a.parquet"])
    assert bytes(obstore.get(from_url(uri), "_change_data/a.parquet").bytes()) == b"bytes"


def test_a_key_that_the_store_does_not_know_is_an_error_of_storage(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(PermissionError):
        puts.put_entry(uri, 0, b"{}")
    with pytest.raises(OSError, match="SignatureDoesNotMatch"):
        puts.list_entries(uri, 0)


# ── a collection ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_walk_on_an_object_store_agrees_with_a_dict_at_every_version(s3: S3Server, tmp_path: Path) -> None:
    walk = Walk(tmp_path, 1, warehouse=s3.new_root())
    for _ in range(25):
        walk.step()
    walk.check()
    walk.check_changes()
    walk.check_others()
    walk.scene.states.close()


@pytest.mark.parametrize("rounds", [12, pytest.param(60, marks=pytest.mark.full(seconds=60))])
def test_two_writers_of_the_same_ticks_leave_each_tick_once(s3: S3Server, tmp_path: Path, rounds: int) -> None:
    root = s3.new_root()
    scene = adding(tmp_path / "reader", vectors=True, warehouse=root)
    found = race(ticks, 2, rounds, str(tmp_path), root)
    commits = audit.transactions(scene.opened())
    assert [commit.mz_timestamp for commit in commits] == list(range(1, rounds + 1))
    claims = [(each + 1, version) for writer in found for each, version in enumerate(writer) if version is not None]
    assert sorted(claims) == [(commit.mz_timestamp, commit.version) for commit in commits]
    assert all(any(version is not None for version in writer) for writer in found), "they did not race"
    assert commits[-1].version > rounds, "nothing was compacted"
    for number in {1, rounds // 2, rounds}:
        at = commits[number - 1].version
        assert {key: int(row["n"]) for (key,), row in scene.state(at).items()} == state_after(number)


def test_a_tick_whose_answer_is_lost_is_one_tick(s3: S3Server, tmp_path: Path, lossy: Relay) -> None:
    walk = Walk(tmp_path, 2, warehouse=s3.new_root())
    walk.commit()
    lossy.lose("PUT", "answer", times=100, ending=entry_path(2))
    walk.commit()
    assert lossy.seen("PUT", entry_path(2)) > 1
    assert lossy.seen("PUT", entry_path(3)) == 0
    walk.commit()
    assert sorted(walk.at) == [0, 1, 2, 3]
    walk.check()
    walk.scene.states.close()
