"""Plans of migrations as pure values: their text, their way back, and what stands in its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog.objects.definitions import (
    Comment,
    Definitions,
    Progress,
    Source,
    Table,
    View,
)
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.definition_errors import CannotRollBack
from airflow_provider_mzshare.control.upgrade.plan import LABELS, Plan, plan_finalize, plan_migration
from airflow_provider_mzshare.control.upgrade.plan_sql import plan_text
from airflow_provider_mzshare.control.upgrade.report import Report, SourceReport, source_report
from airflow_provider_mzshare.control.upgrade.rollback import plan_rollback
from airflow_provider_mzshare.control.upgrade.source_names import source_name
from airflow_provider_mzshare.core.specs import LegacySpec, SourceSettings
from tests.support.legacy import AUCTION, BIDS, JSON, KEYED, USERS

GOLDEN = Path(__file__).parent / "golden"

SINGLE = Definitions(
    source=Source(
        id="u1",
        name=("public", "orders"),
        spec=KafkaSourceSpec(connection="kafka", topic="orders", legacy=LegacySpec(shape="single")),
        settings=SourceSettings(trigger_interval_ms=500),
    ),
    tables=(
        Table(id="u2", kind="output", name=("mz_internal", "u1"), spec=JSON),
        Table(id="u7", name=("shop", 'be"side'), spec=JSON.model_copy(update={"retain_history_seconds": 60})),
    ),
    output="u2",
    progress=Progress(id="u3", name=("public", "orders_progress")),
    views=(
        View(
            id="u5",
            name=("public", "v"),
            query='SELECT "o"."id" FROM "u1" AS "o" JOIN "u9" AS "c" ON "o"."id" = "c"."id"',
            reads=("u1", "u9"),
        ),
        View(id="u6", name=("public", "far"), query='SELECT "p"."tick" FROM "u3" AS "p"', reads=("u3",)),
    ),
    comments=(Comment(object_id="u1", column="amount", comment="in euros"),),
    others={"u9": ("public", "clicks")},
)
MULTI = Definitions(
    source=Source(id="u1", name=("public", "auction"), spec=AUCTION),
    tables=(
        Table(
            id="u2",
            kind="subsource",
            name=("public", "bids"),
            spec=BIDS.model_copy(update={"text_columns": (), "exclude_columns": ()}),
        ),
        Table(id="u3", kind="subsource", name=("public", "People"), spec=USERS),
    ),
    progress=Progress(id="u4", name=("public", "auction_progress")),
)


def nothing_taken(name: Name) -> bool:
    return False


def migrated(before: Definitions) -> Definitions:
    return plan_migration(before, nothing_taken).after


def back(now: Definitions, before: Definitions, taken: set[Name] = frozenset()) -> Plan:  # type: ignore[assignment]
    return plan_rollback(now, before, migrated(before), taken.__contains__)


PLANS = {
    "single": plan_migration(SINGLE, nothing_taken),
    "multi": plan_migration(MULTI, nothing_taken),
    "single_back": back(migrated(SINGLE), SINGLE),
    "multi_back": back(migrated(MULTI), MULTI),
    "single_final": plan_finalize(migrated(SINGLE)),
    "multi_final": plan_finalize(migrated(MULTI)),
}


def test_the_clauses_of_a_key_move_to_the_table() -> None:
    output = Table(id="u2", kind="output", name=("mz_internal", "u1"), spec=KEYED)
    text = plan_text(plan_migration(SINGLE.model_copy(update={"tables": (output,)}), lambda _: False))
    clauses = (
        'KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY ("Id" bigint, part text), OFFSET AS o '
        "ENVELOPE UPSERT (VALUE DECODING ERRORS INLINE AS why)"
    )
    old = f"CREATE SOURCE public.orders (v text) FROM KAFKA CONNECTION kafka (TOPIC 'orders') {clauses} WITH"
    new = f"CREATE TABLE public.orders (v text) FROM SOURCE public.orders_source (REFERENCE orders) {clauses};"
    assert [f"- {old}" in text, f"+ {new}" in text] == [True, True], text


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_is_told_as_a_difference_of_statements(name: str) -> None:
    assert plan_text(PLANS[name]) + "\n" == (GOLDEN / f"{name}.txt").read_text()


def test_every_step_has_a_label_of_its_own_and_all_are_listed() -> None:
    passed: dict[str, set[str]] = {}
    for plan in PLANS.values():
        labels = [step.label for step in plan.steps]
        assert len(set(labels)) == len(labels)
        passed.setdefault(plan.action, set()).update(labels)
    around = {f"{action}_{when}" for action in LABELS for when in ("planned", "noted", "committed")}
    assert {one for labels in LABELS.values() for one in labels} == {one for p in passed.values() for one in p} | around


@pytest.mark.parametrize("before", [SINGLE, MULTI])
def test_back_is_exactly_what_was(before: Definitions) -> None:
    again = back(migrated(before), before).after
    assert again == before
    assert migrated(again) == migrated(before)


def test_a_migration_of_what_is_migrated_is_no_plan() -> None:
    assert not plan_finalize(plan_finalize(migrated(MULTI)).after).steps


def test_ids_are_as_promised() -> None:
    after = migrated(SINGLE)
    assert {item.id: item.name for item in after.items() if item.name != SINGLE.names().get(item.id)} == {
        "u1": ("public", "orders_source")
    }
    assert [(t.id, t.kind) for t in after.tables] == [("u2", "table"), ("u7", "table")]
    assert after.output is None
    assert after.views[0].reads == ("u2", "u9")
    assert after.comments == (Comment(object_id="u2", column="amount", comment="in euros"),)
    multi = migrated(MULTI)
    assert [(t.id, t.kind, t.name) for t in multi.tables] == [(t.id, "table", t.name) for t in MULTI.tables]


def changed(now: Definitions, item_id: str, **update: Any) -> Definitions:
    tables = tuple(t.model_copy(update=update) if t.id == item_id else t for t in now.tables)
    return now.model_copy(update={"tables": tables})


def without(now: Definitions, item_id: str) -> Definitions:
    return now.model_copy(update={"tables": tuple(t for t in now.tables if t.id != item_id)})


LEFT = migrated(SINGLE)
MOVED = changed(LEFT, "u2", name=("public", "moved"))


@pytest.mark.parametrize(
    ("now", "taken", "why"),
    [
        (without(LEFT, "u2"), (), "table orders (u2) was dropped since"),
        (LEFT.model_copy(update={"progress": None}), (), "its progress name orders_progress was dropped since"),
        (changed(LEFT, "u2", spec=USERS), (), "table orders (u2) was changed since"),
        (MOVED, ("public", "orders"), "the name orders was taken by something else since"),
        (changed(MOVED, "u7", name=("public", "orders")), (), "the name orders was taken by table u7 since"),
    ],
)
def test_what_stands_in_the_way_of_going_back_is_told(now: Definitions, taken: Name, why: str) -> None:
    with pytest.raises(CannotRollBack) as raised:
        back(now, SINGLE, {taken})
    assert raised.value.why == why


def test_what_does_not_stand_in_the_way() -> None:
    spec = JSON.model_copy(update={"retain_history_seconds": 90})
    beside = changed(MOVED, "u7", spec=spec, name=("shop", "other"))
    assert back(beside, SINGLE).after == changed(SINGLE, "u7", spec=spec, name=("shop", "other"))


def test_a_schema_that_was_renamed_keeps_its_new_name() -> None:
    source = LEFT.source.model_copy(update={"name": ("store", "orders_source")})
    progress = Progress(id="u3", name=("store", "orders_progress"))
    now = changed(LEFT, "u2", name=("store", "orders")).model_copy(update={"source": source, "progress": progress})
    after = back(now, SINGLE).after
    assert after.source.name == ("store", "orders")
    assert after.source.spec == SINGLE.source.spec
    assert after.tables[0].name == ("mz_internal", "u1")


def test_a_view_that_came_since_reads_the_same_rows() -> None:
    new = View(
        id="u20",
        name=("public", "new"),
        query='SELECT "a"."id", "b"."tick" FROM "u2" AS "a" JOIN "u1" AS "b" ON TRUE',
        reads=("u2", "u1"),
    )
    after = back(LEFT.model_copy(update={"views": (*LEFT.views, new)}), SINGLE).after
    assert after.views[:2] == SINGLE.views
    assert after.views[2].reads == ("u1", "u3")
    assert after.views[2].query == 'SELECT "a"."id", "b"."tick" FROM "u1" AS "a" JOIN "u3" AS "b" ON TRUE'


def test_a_column_that_has_a_comment_keeps_it() -> None:
    on_both = (
        Comment(object_id="u3", column="tick", comment="of the name"),
        Comment(object_id="u1", column="tick", comment="of the source"),
        Comment(object_id="u3", column="offset", comment="next"),
    )
    after = plan_finalize(LEFT.model_copy(update={"comments": on_both})).after
    assert {(c.object_id, c.column, c.comment) for c in after.comments} == {
        ("u1", "tick", "of the source"), ("u1", "offset", "next"),
    }  # fmt: skip


def test_without_any_subsource_there_is_no_way_back() -> None:
    with pytest.raises(CannotRollBack, match="all its former subsources were dropped"):
        back(without(without(migrated(MULTI), "u2"), "u3"), MULTI)
    one = back(without(migrated(MULTI), "u2"), MULTI)
    assert one.notes == ("subsource bids (u2) was dropped since, and does not come back",)
    assert one.after.source.spec.legacy == LegacySpec(shape="tables", tables=(("auction.users", 'public."People"'),))


@pytest.mark.parametrize(
    ("name", "taken", "becomes"),
    [
        ("orders", [], "orders_source"),
        ("orders_source", [], "orders_source_source"),
        ("orders", ["orders_source"], "orders_source_1"),
        ("orders", ["orders_source", "orders_source_1", "orders_source_3"], "orders_source_2"),
        ("x" * 255, [], "x" * 248 + "_source"),
        ("🦊" * 63, [], "🦊" * 62 + "_source"),
        ("🦊" * 63, ["🦊" * 62 + "_source"], "🦊" * 61 + "_source_1"),
    ],
)
def test_the_name_of_the_source_is_the_first_free_one(name: str, taken: list[str], becomes: str) -> None:
    chosen = source_name(("s", name), lambda candidate: candidate[1] in taken)
    assert chosen == ("s", becomes)
    assert len(becomes.encode()) <= 255


def test_a_report_survives_being_written_down() -> None:
    report = source_report(PLANS["single"], "done")
    assert SourceReport.from_json(report.to_json()) == report
    told = Report("migrate", False, [report]).to_json()
    assert told["counts"] == {"planned": 0, "done": 1, "already": 0, "pending": 0, "failed": 0}
    assert "force_source_table_syntax" in told["next"]
    objects = {one["id"]: one for one in told["sources"][0]["objects"]}
    assert objects["u2"]["terraform"] == "add table orders and import it by id u2"
    assert objects["u1"]["dbt"] == "rename model orders to orders_source and use the statement after"
    assert objects["u5"] | {"dbt": "", "terraform": ""} == objects["u5"]
