"""Steps of a replacement, each done twice: it is done once. Rejections and rollbacks leave the right table live."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.definition_errors import StillUsed
from airflow_provider_mzshare.control.lifecycle.live_errors import NotLive
from airflow_provider_mzshare.control.statements.blue_green import (
    SwapPlan,
    drop_unless_live,
    kept_for,
    plan_rollback,
    plan_swap,
    swap_once,
)
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import TerminalError, UnknownItem
from tests.integration.views.conftest import Make
from tests.support.filled import Filled

LIVE = '"Odd ""T"'


NEXT = '"Odd ""T__next"'


@pytest.fixture
def planned(catalog: Catalog, filled: Filled) -> tuple[ItemId, ItemId, SwapPlan]:
    """The table that is live, the new one, and the plan that was made before that one was."""
    source = filled.source()
    old = filled.table(source, 'Odd "T', "id bigint, note text")
    plan = plan_swap(catalog, LIVE)
    new = filled.table(source, 'Odd "T__next', "id bigint")
    filled.feed(source, [{"id": 1}])
    return old, new, plan


@pytest.fixture
def tables(planned: tuple[ItemId, ItemId, SwapPlan]) -> tuple[ItemId, ItemId]:
    return planned[:2]


def name_of(catalog: Catalog, item_id: ItemId) -> str | None:
    with catalog.read() as session:
        item = lookup.get_item(session, item_id)
        alive = lookup.find(session, item.name)
    return item.name[1] if alive is not None and alive.id == item_id else None


def test_a_replacement_there_and_back_and_there_again(
    catalog: Catalog, planned: tuple[ItemId, ItemId, SwapPlan]
) -> None:
    old, new, plan = planned
    assert plan.to_json() == {
        "table": 'public."Odd ""T"',
        "old_id": old,
        "other": 'public."Odd ""T__next"',
        "keep_as": f'public."Odd ""T__old_{old}"',
        "last_id": old,
        "views": [],
        "source": "public.s",
        "reference": ["t"],
        "format": "json",
        "envelope": "none",
        "key_format": "",
    }
    for attempt in range(3):
        swapped = swap_once(catalog, plan.table, plan.other, new_id=new, keep_as=plan.keep_as)
        assert (swapped.changed, swapped.old_id, swapped.keep_as) == (attempt == 0, old, plan.keep_as)
        assert (name_of(catalog, new), name_of(catalog, old)) == ('Odd "T', f'Odd "T__old_{old}')
    # The teardown of the run finds nothing that it could drop.
    assert "nothing to drop" in drop_unless_live(catalog, plan.table, plan.other, last_id=plan.last_id)
    back = plan_rollback(catalog, LIVE)
    assert (back.other, back.old_id, back.keep_as) == (plan.keep_as, new, f'public."Odd ""T__old_{new}"')
    for _ in range(2):
        swap_once(catalog, back.table, back.other, new_id=old, keep_as=back.keep_as)
        assert (name_of(catalog, old), name_of(catalog, new)) == ('Odd "T', f'Odd "T__old_{new}')
    again = plan_rollback(catalog, LIVE, back.keep_as)
    assert swap_once(catalog, again.table, again.other, new_id=new, keep_as=again.keep_as).changed
    assert (name_of(catalog, new), name_of(catalog, old)) == ('Odd "T', f'Odd "T__old_{old}')


def test_a_rejected_table_is_dropped_once_and_the_live_one_stays(
    catalog: Catalog, planned: tuple[ItemId, ItemId, SwapPlan]
) -> None:
    old, new, plan = planned
    assert "is kept" in drop_unless_live(catalog, plan.table, plan.other, last_id=plan.last_id, keep=True)
    assert f"dropped {plan.other} {new}" in drop_unless_live(catalog, plan.table, plan.other, last_id=plan.last_id)
    assert "nothing to drop" in drop_unless_live(catalog, plan.table, plan.other, last_id=plan.last_id)
    assert (name_of(catalog, old), name_of(catalog, new)) == ('Odd "T', None)


def test_the_replaced_table_is_never_taken_for_the_loser(
    catalog: Catalog, planned: tuple[ItemId, ItemId, SwapPlan]
) -> None:
    """Swapped without a name to keep it under, it bears the name of the other."""
    old, new, plan = planned
    swap_once(catalog, LIVE, NEXT, new_id=new)
    assert "nothing to drop" in drop_unless_live(catalog, LIVE, NEXT, last_id=plan.last_id)
    assert name_of(catalog, old) == 'Odd "T__next'


def test_nothing_that_was_there_before_is_taken_for_the_new_table(
    catalog: Catalog, planned: tuple[ItemId, ItemId, SwapPlan]
) -> None:
    """A name that is taken is refused, and a teardown drops only what is newer than its plan."""
    _, new, _ = planned
    with pytest.raises(TerminalError, match=r"a table .* exists already"):
        plan_swap(catalog, LIVE)
    assert "nothing to drop" in drop_unless_live(catalog, LIVE, NEXT, last_id=new)
    assert name_of(catalog, new) == 'Odd "T__next'


def test_a_table_that_is_kept_again_has_another_name(
    catalog: Catalog, planned: tuple[ItemId, ItemId, SwapPlan], filled: Filled
) -> None:
    """The first swap's drop waits for days: it must not meet the table that the second swap keeps."""
    old, new, plan = planned
    first = kept_for(plan.keep_as, new)
    swap_once(catalog, plan.table, plan.other, new_id=new, keep_as=first)
    back = plan_rollback(catalog, LIVE)
    assert back.other == first
    swap_once(catalog, back.table, back.other, new_id=old, keep_as=kept_for(back.keep_as, old))
    again = plan_swap(catalog, LIVE)
    newer = filled.table(other := filled.source("s2"), 'Odd "T__next', "id bigint")
    filled.feed(other, [{"id": 1}])
    second = kept_for(again.keep_as, newer)
    swap_once(catalog, again.table, again.other, new_id=newer, keep_as=second)
    assert name_of(catalog, old) == f'Odd "T__old_{old}_{newer}'
    assert first != second


def test_what_cannot_be_swapped_is_told(catalog: Catalog, tables: tuple[ItemId, ItemId], filled: Filled) -> None:
    old, new = tables
    name_of_live = name_of(catalog, old)
    with pytest.raises(TerminalError, match="neither is u99"):
        swap_once(catalog, LIVE, '"Odd ""T__next"', new_id="u99")
    with pytest.raises(TerminalError, match=f"is now {old}, but was u99 when its replacement was planned"):
        swap_once(catalog, LIVE, NEXT, new_id=new, old_id="u99", force=True)
    assert name_of(catalog, old) == name_of_live
    with pytest.raises(UnknownItem):
        swap_once(catalog, LIVE, "nobody", new_id=new)
    with pytest.raises(UnknownItem):
        plan_swap(catalog, "nobody")
    with pytest.raises(TerminalError, match="it is not clear which table gets the name"):
        plan_rollback(catalog, LIVE)
    filled.table(filled.source("s2"), long := "x" * 250, "id bigint")
    with pytest.raises(TerminalError, match="the limit is 255"):
        plan_swap(catalog, long)
    assert (name_of(catalog, old), name_of(catalog, new)) == ('Odd "T', 'Odd "T__next')


def test_views_are_told_and_keep_what_they_read(catalog: Catalog, tables: tuple[ItemId, ItemId], make: Make) -> None:
    old, new = tables
    make("v", f"SELECT note FROM {LIVE}")
    make("w", "SELECT note FROM v")
    make("x", 'SELECT id FROM "Odd ""T__next"')
    plan = plan_swap(catalog, LIVE, "another")
    assert set(plan.views) == {"public.v", "public.w"}
    swap_once(catalog, LIVE, NEXT, new_id=new, keep_as=plan.keep_as)
    assert set(plan_swap(catalog, LIVE).views) == {"public.x"}
    with pytest.raises(StillUsed, match="still used by public"):
        drop_unless_live(catalog, LIVE, plan.keep_as, last_id="u0")
    assert name_of(catalog, old) == f'Odd "T__old_{old}'


def test_what_has_stalled_is_replaced_or_rolled_back_from_and_takes_no_name_itself(
    catalog: Catalog, planned: tuple[ItemId, ItemId, SwapPlan], filled: Filled
) -> None:
    """The name that a table is kept by has no readers: only the one that takes the name has to be live."""
    old, new, plan = planned
    swap_once(catalog, plan.table, plan.other, new_id=new, keep_as=plan.keep_as)
    with catalog.read() as session:
        source = lookup.get_table_item(session, new).source_id
    filled.feed(source, [{"id": 2}], stall=[new])
    back = plan_rollback(catalog, LIVE)
    with pytest.raises(NotLive, match="is stalled"):  # here it would take the other's name, which may have readers
        swap_once(catalog, back.table, back.other, new_id=old)
    assert swap_once(catalog, back.table, back.other, new_id=old, keep_as=back.keep_as).changed
    assert name_of(catalog, old) == 'Odd "T'
    for _ in range(2):
        with pytest.raises(NotLive, match=r"is stalled \(full\)") as refused:
            swap_once(catalog, LIVE, back.keep_as, new_id=new, keep_as=plan.keep_as)
        assert refused.value.hint.endswith("or, to swap anyway, force")
    assert name_of(catalog, old) == 'Odd "T'
    assert swap_once(catalog, LIVE, back.keep_as, new_id=new, keep_as=plan.keep_as, force=True).changed
