"""``PushOperator``: what a task pushes counts once, however often it is tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_mzshare.operators.push import PushOperator
from tests.support.catalog import new_sqlite
from tests.support.inbox import Inbox

RUN = SimpleNamespace(dag_id="d", run_id="manual__2026-01-31T00:00:00+00:00", task_id="push", map_index=-1)


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    with closing(Inbox(tmp_path / "home", new_sqlite(tmp_path / "home" / "catalog.db"), partitions=2)) as made:
        monkeypatch.setenv("MZSHARE_HOME", str(made.folder))
        yield made


def execute(ti: Any = RUN, **arguments: Any) -> dict[str, Any]:
    """As a worker does: templates first."""
    operator = PushOperator(task_id="push", source="{{ params.source }}", **arguments)
    context: Any = {"ti": ti, "params": {"source": "inbox"}, "task": operator}
    operator.render_template_fields(context)
    answer: dict[str, Any] = operator.execute(context)
    return answer


def test_a_task_that_is_tried_again_takes_nothing_twice(inbox: Inbox) -> None:
    records = ['{"a": {"b": 1}}', {"value": "v", "key": "k"}]
    first = execute(records=records)
    assert (first["messages"], first["repeated"]) == (2, 0)
    assert first["ranges"] == [{"partition": 0, "first": 0, "end": 2, "is_repeated": False}]
    again = execute(records=records)
    assert (again["messages"], again["repeated"]) == (2, 2)
    mapped = SimpleNamespace(**{**vars(RUN), "map_index": 1})
    assert execute(mapped, records=records)["repeated"] == 0
    assert execute(records=records, batch="mine")["repeated"] == 0
    assert execute(records=records, batch=None)["repeated"] == 0
    assert execute(records=[b"\xff"], batch="bytes")["messages"] == 1
    assert execute(records=pa.table({"value": ["x", "y"]}), batch="arrow")["messages"] == 2
    assert inbox.values() == [*[b'{"a": {"b": 1}}', b"v"] * 4, b"\xff", b"x", b"y"]


def test_other_records_under_the_same_id_are_not_tried_again(inbox: Inbox) -> None:
    execute(records=["a"])
    with pytest.raises(AirflowFailException, match="other records"):
        execute(records=["b"])
    assert inbox.texts() == ["a"]


def test_records_of_a_function_and_of_a_file(inbox: Inbox, tmp_path: Path) -> None:
    def made(context: Context) -> Iterator[str]:
        return (f"{context['params']['source']} {n}" for n in range(3))  # type: ignore[index]

    assert execute(produce=made, partition="{{ 1 }}")["ranges"][0]["partition"] == 1
    assert inbox.texts(1) == ["inbox 0", "inbox 1", "inbox 2"]
    file = tmp_path / "records.jsonl"
    file.write_text('{"value": {"n": 1}}\n')
    assert execute(file=str(file), file_format="jsonl", batch="f")["messages"] == 1
    assert execute(file=f"file://{file}", batch="g")["messages"] == 1
    assert inbox.values() == [b'{"n": 1}', b'{"value": {"n": 1}}']


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "give records, produce or file"),
        ({"records": ["a"], "file": "f"}, "give records, produce or file"),
        ({"records": ["a"], "partition": "x"}, "partition must be a whole number"),
        ({"records": [1]}, "record 1: it is a value of type int"),
        ({"file": "f", "file_format": "csv"}, "file_format cannot be 'csv'"),
    ],
)
def test_what_is_wrong_fails_the_task_at_once(inbox: Inbox, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(AirflowFailException, match=told):
        execute(**arguments)
    assert inbox.texts() == []
