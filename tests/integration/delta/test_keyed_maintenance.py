"""What maintenance removes of a keyed table with vectors, and what the clean-ups of others do to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaProtocolError

from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections import log as deltalog
from tests.support.keyed_history import ROW, History
from tests.support.keyed_orders import check_files, check_rows, maintain
from tests.support.keyed_readers import check_refused, feeds


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path, 1)
    made.commits(14)
    yield made
    made.close()


# ── maintenance ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merge"])
def test_again_and_again_what_is_needed_stays_and_all_else_goes(tmp_path: Path, vectors: bool) -> None:
    """Also a vector that is replaced when the entry that gave it has been removed long ago; and the change files that
    delta-rs writes."""
    history = History(tmp_path, 1, vectors=vectors)
    history.commits(14)
    for step in (History.commit, History.compact, History.checkpoint, History.compact, History.checkpoint):
        step(history)
        history.commits(4)
        maintain(history)
    assert min(history.versions_logged()) > 20
    check_rows(history, None, *history.earlier())
    (changes,) = feeds(history.path, ROW).values()
    assert changes(history.kept, history.newest) == history.changes(history.kept, history.newest)
    history.close()


def test_a_dry_run_names_vectors_and_change_files_and_removes_none(history: History) -> None:
    before = history.present()
    planned = history.maintain(dry_run=True)
    assert history.present() == before
    assert {path for path in planned.data_files if not path.startswith("_mz_events/")} == before - history.needed()
    kinds = {path.partition("/")[0] if "/" in path else path.rpartition(".")[2] for path in planned.data_files}
    assert {"bin", "_change_data"} <= kinds


def test_files_of_a_compaction_that_is_not_put_yet_stay_for_a_day(history: History) -> None:
    history.write_compaction()
    assert history.written is not None
    outputs = {file.path for file in history.written.outputs}
    history.maintain()
    assert history.present() == history.needed() | outputs
    history.commit()
    history.put_compaction()
    check_rows(history)


def test_files_of_a_compaction_that_was_never_put_go_once_the_log_has_gone_on(history: History) -> None:
    """Its writer may sleep as long as the slot of its put is free."""
    history.write_compaction()
    assert history.written is not None
    outputs = {file.path for file in history.written.outputs}
    history.written = None
    history.grow_old(days=2)
    history.maintain()
    assert history.present() == history.needed() | outputs
    history.commit()
    history.maintain()
    check_files(history)


# ── entries in a hole of the log ──────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_below_a_gap_is_no_part_of_the_log_for_anybody(history: History) -> None:
    history.compact()
    history.commits(6)
    maintain(history)
    late = deltalog.entry_path(3)
    assert min(history.versions_logged()) > 3
    ticks = audit.transactions(history.scene.opened())
    shutil.copy(history.path / deltalog.entry_path(history.newest), history.path / late)
    collection = history.scene.opened()
    assert audit.transactions(collection) == ticks
    assert [tick.version for tick in collection.ticks_after(ticks[-2].mz_timestamp)] == [ticks[-1].version]
    assert history.damages() == []
    check_rows(history, None, *history.earlier())
    history.commit()
    history.checkpoint()
    history.commits(6)
    assert late in history.maintain().log_files
    check_files(history)
    check_rows(history, None, *history.earlier())


# ── what others do ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("switched_off", [True, False])
def test_a_checkpoint_of_others_takes_no_old_entries_because_the_table_says_so(
    tmp_path: Path, switched_off: bool
) -> None:
    history = History(tmp_path, 1)
    history.commits(17)
    if not switched_off:
        DeltaTable(str(history.path)).alter.set_table_properties({"delta.enableExpiredLogCleanup": "true"})
        history.followed()
    while history.newest < 18:
        history.commit()
    history.grow_old(days=40)
    before = history.versions_logged()
    DeltaTable(str(history.path)).optimize.compact(commit_properties=CommitProperties(max_commit_retries=0))
    history.followed()
    assert (history.path / "_delta_log" / f"{19:020d}.checkpoint.parquet").exists()
    assert (set(before) <= set(history.versions_logged())) == switched_off
    history.commit()
    check_rows(history, None, *([2, 5, 9] if switched_off else []))
    history.close()


def test_who_asks_for_a_clean_up_of_the_log_loses_old_ticks_loudly_and_nothing_else(history: History) -> None:
    history.grow_old(days=40)
    DeltaTable(str(history.path)).cleanup_metadata()
    assert min(history.versions_logged()) == 10
    history.commit()
    history.compact()
    check_rows(history, None, 11, 13)
    assert history.damages() == []
    check_refused(history.path, 5, "No files in log segment")


def test_a_vacuum_of_delta_rs_takes_old_ticks_and_no_row_of_now(history: History) -> None:
    history.compact()
    history.commits(2)
    assert DeltaTable(str(history.path)).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert history.damages() == []
    check_rows(history)
    history.commit()
    check_rows(history)
    check_refused(history.path, 5, "/part-")


def test_a_full_vacuum_of_delta_rs_takes_live_vectors_and_a_check_says_so(history: History) -> None:
    history.grow_old(days=1)
    vector = history.live_vector()
    DeltaTable(str(history.path)).vacuum(full=True, dry_run=False)
    assert not vector.exists()
    assert any(each.startswith(f"{vector.name} is missing") for each in history.damages())
    check_refused(history.path, None, "/deletion_vector_")


def test_what_delta_rs_refuses_and_what_it_tells_wrongly(history: History) -> None:
    """For docs/reference/reading.md: should this fail, the page can promise more."""
    table = DeltaTable(str(history.path))
    assert table.count() > history.rows().total(), "it counts rows that vectors take away"
    for read in (table.to_pyarrow_table, table.to_pyarrow_dataset, table.to_pandas):
        with pytest.raises(DeltaProtocolError, match="deletionVectors"):
            read()
    (changes,) = feeds(history.path, ROW).values()
    assert changes(1, history.newest) == history.changes(1, history.newest)
