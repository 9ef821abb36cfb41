"""What a change stream gives, and what it refuses: through the door for Python users, and on the command line."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest
from sqlalchemy import update

from airflow_provider_mzshare import MzShare
from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.lifecycle.check_table import DamagedTable
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import MzShareError, NotReadable
from tests.integration.cli.conftest import Cli
from tests.support.change_streams import Streams
from tests.support.filled import Filled
from tests.support.reading_page import examples, run

TICKS = 4


@pytest.fixture
def times(filled: Filled) -> list[int]:
    """``orders`` has a row for each tick, and one more in the third."""
    source = filled.source()
    filled.table(source, "orders", "id bigint, amount bigint")
    return [
        filled.feed(source, [{"id": number, "amount": 7}] * (2 if number == 2 else 1)).mz_timestamp
        for number in range(TICKS)
    ]


Line = tuple[int, ...]


def lines(mz: MzShare, **asked: object) -> list[Line]:
    with mz.changes("orders", **asked) as batches:  # type: ignore[arg-type]
        found = list(batches)
        return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def test_a_snapshot_and_what_came_after_it(mz: MzShare, times: list[int]) -> None:
    first, second, third, fourth = times
    rows = [(second, 1, 0, 7), (second, 1, 1, 7), (third, 1, 2, 7), (third, 1, 2, 7), (fourth, 1, 3, 7)]
    assert sorted(lines(mz, as_of=second)) == rows
    assert sorted(lines(mz, as_of=third - 1)) == [(third - 1, 1, 0, 7), (third - 1, 1, 1, 7), *rows[2:]]
    assert sorted(lines(mz, as_of=second, up_to=fourth)) == rows[:4]
    assert sorted(lines(mz)) == sorted((fourth, *row[1:]) for row in rows)
    assert lines(mz, as_of=first, up_to=first + 1) == [(first, 1, 0, 7)]
    with mz.changes("orders", columns=["amount"], as_of=second, system_columns=True) as batches:
        assert batches.schema.names == [
            "mz_timestamp", "mz_diff", "amount", "_mz_tick", "_mz_partition", "_mz_offset"
        ]  # fmt: skip
        assert sorted(batches.read_all().column("_mz_tick").to_pylist()) == [1, 2, 3, 3, 4]


def test_slices_that_meet_give_every_change_once(mz: MzShare, times: list[int]) -> None:
    whole = lines(mz, snapshot=False)
    assert [line[0] for line in whole] == [times[1], times[2], times[2], times[3]]
    cuts = [times[0] + 1, times[1], times[2] - 1, times[2], times[2], times[3], times[3] + 1]
    parts = [lines(mz, as_of=a, up_to=b, snapshot=False) for a, b in pairwise(cuts)]
    assert [line for part in parts for line in part] == whole
    assert [len(part) for part in parts] == [0, 1, 0, 0, 2, 1]


def test_progress_is_told_of_ticks_without_rows_too(mz: MzShare, filled: Filled, times: list[int]) -> None:
    nothing = filled.feed(ItemId("u1"), []).mz_timestamp
    found = lines(mz, as_of=times[2], progress=True)
    assert sorted(found[:4], key=str) == [(times[2], False, 1, n, 7) for n in (0, 1, 2, 2)]
    assert found[4:] == [
        (times[2] + 1, True, None, None, None),
        (times[3], False, 1, 3, 7),
        (times[3] + 1, True, None, None, None),
        (nothing + 1, True, None, None, None),
    ]
    assert lines(mz, as_of=nothing + 1, snapshot=False, progress=True) == []


def test_what_cannot_be_given_in_full_is_refused_with_the_nearest_times(mz: MzShare, times: list[int]) -> None:
    first, last = times[0], times[-1]
    for asked, says, hint in (
        ({"as_of": first - 1}, f"it can be read since {first}", f"the first time of a snapshot is {first}"),
        (
            {"as_of": first, "snapshot": False},
            f"it can be read since {first}",
            f"the first time of changes without a snapshot is {first + 1}",
        ),
        ({"as_of": last + 1}, f"not final yet: its last time is {last}", ""),
        ({"up_to": last + 2}, f"what is before {last + 1} is final", f"ask for changes up to {last + 1}"),
        ({"as_of": last + 2, "snapshot": False}, "cannot begin at .* yet", f"ask for changes from {last + 1} on"),
        ({"as_of": last, "up_to": last}, f"ends before it begins, with the snapshot as of {last}", ""),
        ({"up_to": last}, f"with the newest snapshot, as of {last}", f"from {first} to {last - 1}"),
        ({"up_to": first, "snapshot": False}, f"with the first changes that there are, from {first + 1} on", ""),
        ({"columns": ["nothing"]}, "there is no column nothing; there are: id, amount", ""),
    ):
        with pytest.raises(NotReadable, match=says) as refused:
            lines(mz, **asked)
        assert hint in refused.value.hint


def test_only_tables_with_a_tick_have_changes(mz: MzShare, filled: Filled, times: list[int]) -> None:
    mz.sql("CREATE VIEW v AS SELECT id FROM orders")
    for name, says in (("v", "view v has no change stream"), ("s", "progress s has no change stream")):
        with pytest.raises(NotReadable, match=says), mz.changes(name):
            pass
    filled.table(filled.source("other"), "new", "id bigint")
    with pytest.raises(NotReadable, match="new has no committed tick yet"), mz.changes("new"):
        pass
    with pytest.raises(MzShareError, match="'nobody'"), mz.changes("nobody"):
        pass


def test_a_table_with_a_column_of_the_streams_own_names_the_others(mz: MzShare, filled: Filled) -> None:
    source = filled.source()
    filled.table(source, "orders", "mz_diff bigint, amount bigint")
    tick = filled.feed(source, [{"mz_diff": 9, "amount": 7}])
    with pytest.raises(NotReadable, match="has a column mz_diff of its own"):
        lines(mz)
    assert lines(mz, columns=["amount"]) == [(tick.mz_timestamp, 1, 7)]


def test_what_maintenance_has_removed_is_an_error_and_no_short_answer(
    mz: MzShare, filled: Filled, times: list[int]
) -> None:
    """A stream that is slower than history: what it has not come to yet goes."""
    source = ItemId("u1")
    for number in range(40):
        filled.feed(source, [{"id": number, "amount": 8}])
    with mz.changes("orders", as_of=times[0]) as batches:
        assert batches.read_next_batch().num_rows == 1
        with filled.catalog.write() as session:
            session.execute(update(TableRow).values(since=TableRow.upper - 1))
        later = times[-1] + 3 * 86_400_000
        for hour in (0, 3_600_001):
            maintain(filled.catalog, filled.root, now_ms=later + hour)
        with pytest.raises(NotReadable, match=r"its changes from \d+ on are gone: it can be read since") as gone:
            list(batches)
    assert gone.value.hint == "begin anew, with a snapshot"


def test_a_commit_that_is_gone_though_it_is_needed_is_damage(mz: MzShare, filled: Filled, times: list[int]) -> None:
    Path(mz.path("orders"), "_delta_log", f"{3:020d}.json").unlink()
    with pytest.raises(DamagedTable, match=r"orders is damaged"):
        lines(mz, as_of=times[0])


def test_on_the_command_line(cli: Cli, filled: Filled, times: list[int]) -> None:
    found = cli.ok("changes", "orders", "--as-of", str(times[2]), "-o", "json").json
    assert found[-1] == {"mz_timestamp": times[3], "mz_diff": 1, "id": 3, "amount": 7}
    assert len(found) == 5
    bounds = ["--no-snapshot", "--as-of", str(times[1]), "--up-to", str(times[2])]
    assert cli.ok("changes", "orders", "-o", "csv", *bounds).out == (
        f"mz_timestamp,mz_diff,id,amount\n{times[1]},1,1,7\n"
    )
    marked = cli.ok("changes", "orders", "-o", "csv", "--progress", "--system-columns", *bounds).out
    assert marked.splitlines() == [
        "mz_timestamp,mz_progressed,mz_diff,id,amount,_mz_tick,_mz_partition,_mz_offset",
        f"{times[1]},false,1,1,7,2,0,1",
        f"{times[1] + 1},true,,,,,,",
        f"{times[2]},true,,,,,,",
    ]
    assert len(cli.ok("changes", "orders", "--no-snapshot", "--limit", "2", "-o", "json").json) == 2
    shown = cli.ok("changes", "orders", "--no-snapshot").out
    assert len(shown.splitlines()) == 2 + 4
    assert "the first time of a snapshot is" in cli.error("changes", "orders", "--as-of", "1")
    assert "is not a name" in cli.error("changes", "a b")


def test_a_table_that_has_stalled_is_told_on_the_command_line_with_what_goes_on(
    cli: Cli, filled: Filled, times: list[int]
) -> None:
    table = filled.table(other := filled.source("other"), "stalls", "id bigint")
    first = filled.feed(other, [{"id": 1}]).mz_timestamp
    filled.feed(other, [{"id": 2}], stall=[table])
    note = "note: table stalls is stalled (full), 1 tick (1 offset) behind"
    begin = ("--as-of", str(first))
    for options in ([], ["--no-snapshot"], begin, ["-f", "--timeout", "0.1"], ["-f", "--timeout", "0", *begin]):
        answer = cli.ok("changes", "stalls", "-o", "csv", *options)
        assert answer.err.startswith(note), options
        assert "ALTER TABLE stalls RESUME" in answer.err
    for options in (begin, ("-f", *begin)):
        assert cli.ok("changes", "stalls", *options, "--up-to", str(first + 1)).err == ""
    assert cli.ok("changes", "orders").err == ""
    for options in (
        ["--as-of", str(first + 1)], ["--up-to", str(first + 2)], ["--no-snapshot", "--as-of", str(first + 2)],
    ):  # fmt: skip
        assert "ALTER TABLE stalls RESUME" in cli.error("changes", "stalls", *options)
    assert "ALTER TABLE stalls RESUME" in cli.error("read", "stalls", "--as-of", str(first + 1))


def test_the_examples_of_the_page(cli: Cli, filled: Filled, times: list[int]) -> None:
    whole, followed = examples("What has changed")
    with mock.patch.dict(os.environ, cli.environment):
        found = run(whole, time=times[1])["changes"]
        assert run(followed, time=times[1])["rows"] == found.num_rows == 5
    assert sorted(found.column("mz_timestamp").to_pylist()) == [times[1]] * 2 + [times[2]] * 2 + times[3:]


def test_changes_add_up_for_rows_that_are_only_added(filled: Filled, times: list[int]) -> None:
    assert Streams(filled.catalog, filled.root, "orders").check() == 8 * 7 // 2
