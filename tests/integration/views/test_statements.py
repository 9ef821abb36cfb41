"""Views by statement: made, shown, renamed, dropped with what hangs on them, all or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.definition_errors import StillUsed
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.control.views.view_errors import UnknownRelation
from airflow_provider_mzshare.errors import MzShareError, SpecConflict
from tests.support.filled import Filled

Run = Callable[[str], list[Result]]


@pytest.fixture
def run(catalog: Catalog, filled: Filled) -> Run:
    source = filled.source()
    filled.table(source, "orders", "id bigint, note text")
    filled.table(source, "others", "id bigint, n integer")
    return lambda text: execute_script(catalog, text, FixedConnections({}))


def shown(run: Run, name: str) -> str:
    (result,) = run(f"SHOW CREATE VIEW {name}")
    assert result.rows is not None
    return str(result.rows[0]["create_sql"])


def names(run: Run) -> list[str]:
    (result,) = run("SHOW VIEWS")
    return [str(row["name"]) for row in result.rows or []]


def test_a_view_is_made_shown_and_made_again_from_what_is_shown(run: Run) -> None:
    (made,) = run("CREATE VIEW big AS SELECT o.id, count(*) AS n FROM orders AS o WHERE id > 5 GROUP BY o.id")
    assert (made.command, made.name, made.message) == ("CREATE VIEW", "public.big", f"CREATE VIEW public.big {made.id}")
    text = shown(run, "big")
    assert text.startswith("CREATE VIEW public.big AS SELECT o.id, ")
    (again,) = run(text.replace("CREATE VIEW", "CREATE VIEW IF NOT EXISTS"))
    assert "it exists" in again.message
    assert again.id == made.id
    with pytest.raises(SpecConflict):
        run("CREATE VIEW IF NOT EXISTS big AS SELECT id FROM others")
    run("ALTER TABLE orders RENAME TO old_orders; ALTER VIEW big RENAME TO large")
    assert "FROM old_orders AS o " in shown(run, "large")
    run("ALTER TABLE old_orders SWAP WITH others FORCE")
    assert "FROM others AS o " in shown(run, "large")
    assert names(run) == ["public.large"]


def test_what_views_read_is_not_dropped_without_them(run: Run) -> None:
    run("CREATE VIEW a AS SELECT id FROM orders; CREATE VIEW b AS SELECT a.id FROM a, others")
    run("CREATE VIEW c AS SELECT id FROM b")
    for text, words in (
        ("DROP TABLE orders", "used by view a, view b, view c"),
        ("DROP VIEW a", "used by view b, view c"),
        ("DROP VIEW b RESTRICT", "used by view c"),
        ("DROP SOURCE s", "orders"),
    ):
        with pytest.raises(StillUsed, match=words):
            run(text)
    run("DROP VIEW c")
    run("DROP VIEW IF EXISTS c")
    with pytest.raises(MzShareError, match="does not exist"):
        run("DROP VIEW c")
    run("DROP VIEW a CASCADE")
    assert names(run) == []
    run("CREATE VIEW a AS SELECT id FROM orders; CREATE VIEW b AS SELECT id FROM a; DROP SOURCE s CASCADE")
    assert names(run) == []


def test_a_transaction_makes_all_views_or_none(run: Run) -> None:
    with pytest.raises(UnknownRelation):
        run("BEGIN; CREATE VIEW a AS SELECT id FROM orders; CREATE VIEW b AS SELECT id FROM nowhere; COMMIT")
    assert names(run) == []
    run("BEGIN; CREATE VIEW b AS SELECT id FROM orders; CREATE VIEW a AS SELECT id FROM b; COMMIT")
    assert names(run) == ["public.b", "public.a"]
    (told,) = run("EXPLAIN CREATE VIEW z AS SELECT id FROM a")
    assert told.rows
    assert names(run) == ["public.b", "public.a"]


ODD = (
    "left", "filter", "date", "order", "values", "select", "offset", "interval", "over", "with", "array", "user", "x y",
    'a"b', "a`b", "a.b", "$(rm)", "{{ x }}", "--conf", "😀", "CamelCase", "u5", "?column?", "new", "'",
)  # fmt: skip


def test_names_are_quoted_right_wherever_they_stand(catalog: Catalog, filled: Filled, run: Run) -> None:
    """As a table, an alias, a column and a view: what is shown makes the same view again."""
    source = filled.source("t")
    script, views = [], []
    columns = [name for name in ODD if not set(name) & set(" ,;{}()=")]
    for name in ODD[::4]:
        filled.table(source, name, ", ".join(f"{column} bigint" for column in columns))
        table, view, starred = (_quoted(name + end) for end in ("", "_v", "_w"))
        picked = ", ".join(f"{table}.{_quoted(column)}" for column in columns)
        script += [f"CREATE VIEW {view} AS SELECT {picked} FROM {table}"]
        script += [f"CREATE VIEW {starred} AS SELECT z.* FROM {table} AS z"]
        views += [view, starred]
    run(f"BEGIN; {'; '.join(script)}; COMMIT")
    texts = [
        str(result.rows[0]["create_sql"]) for result in run("; ".join(f"SHOW CREATE {v}" for v in views)) if result.rows
    ]
    again = run(f"BEGIN; {' '.join(text.replace('CREATE VIEW', 'CREATE VIEW IF NOT EXISTS') for text in texts)} COMMIT")
    assert len(again) == len(views)
    assert all("it exists" in result.message for result in again)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
