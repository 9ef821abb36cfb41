"""Queries that somebody broke: each is understood or refused in one error of ours, and in no time."""

from __future__ import annotations

import random
import re
import time

import pytest

from airflow_provider_mzshare.control.sql.script import parse_script
from airflow_provider_mzshare.control.sql.values import Query
from airflow_provider_mzshare.control.views.columns import Typed, _sql_type, outputs
from airflow_provider_mzshare.control.views.queries import read_query, tables_of
from airflow_provider_mzshare.control.views.resolving import Resolved
from airflow_provider_mzshare.control.views.translating import to_spark
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import MzShareError

QUERIES = (
    "SELECT id, amount FROM orders WHERE id > 1 AND note LIKE 'a%' ORDER BY id DESC LIMIT 3",
    "WITH big AS (SELECT * FROM orders WHERE id > 1) SELECT count(*), sum(amount) FILTER (WHERE id > 2) FROM big",
    "SELECT o.id, n.n FROM orders AS o LEFT JOIN numbers AS n USING (id) WHERE o.amount IS NOT NULL",
    "SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM numbers AS n WHERE n.id = o.id) UNION SELECT 1",
    "SELECT note ->> 'a' AS a, (amount / 2)::int, CASE WHEN id = 1 THEN 'x' ELSE note END FROM orders",
    "SELECT row_number() OVER (PARTITION BY note ORDER BY amount) AS r, x.a FROM orders, (VALUES (1), (2)) AS x(a)",
    "SELECT g.x, interval '1 day' FROM unnest(ARRAY[2, 1]) AS g(x) WHERE g.x = ANY(ARRAY[1, 3])",
)
COLUMNS = {
    "orders": {"id": "bigint", "amount": "numeric(12,2)", "note": "text"},
    "numbers": {"id": "bigint", "n": "integer"},
}
WORDS = sorted({word for query in QUERIES for word in re.findall(r"\w+|[^\w\s]", query)})


def broken(source: random.Random) -> str:
    tokens = re.findall(r"'(?:[^']|'')*'|\w+|[^\w\s]+|\s+", source.choice(QUERIES))
    for _ in range(source.randint(1, 4)):
        place, other = source.randrange(len(tokens)), source.randrange(len(tokens))
        tokens[place] = source.choice(("", tokens[place] * 2, f" {source.choice(WORDS)} ", tokens[other]))
    return "".join(tokens)


def understand(text: str) -> bool:
    written = [statement for transaction in parse_script(text) for statement in transaction.statements]
    if len(written) != 1 or not isinstance(written[0], Query):
        return False
    tree = read_query(written[0].text)
    reads = tuple(dict.fromkeys(ItemId(table.name) for table in tables_of(tree)))
    if any(one not in COLUMNS for one in reads):
        return False
    typed = Typed(None)  # type: ignore[arg-type]  # nothing is looked up
    typed._columns.update({ItemId(n): {c: _sql_type(t) for c, t in cols.items()} for n, cols in COLUMNS.items()})
    query = Resolved(tree, reads)
    assert Resolved(read_query(query.text), reads).text == query.text
    qualified = typed.qualified(query)
    outputs(qualified)
    to_spark(qualified)
    return True


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_nothing_but_our_errors_comes_out(count: int) -> None:
    source = random.Random(count)
    fine, slowest = 0, 0.0
    for _ in range(count):
        text, began = broken(source), time.process_time()
        try:
            fine += understand(text)
        except MzShareError:
            pass
        except Exception as error:
            raise AssertionError(text) from error
        slowest = max(slowest, time.process_time() - began)
    assert fine > count / 50, "the rest is refused before anything is looked at"
    assert slowest < 5
