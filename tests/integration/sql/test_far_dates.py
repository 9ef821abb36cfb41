"""Dates and times far away are written as PostgreSQL itself writes them."""

from __future__ import annotations

import random

import pyarrow as pa

from airflow_provider_mzshare.storage.collections.values import far_text
from tests.support.postgres import Postgres

FIRST, LAST = -210_866_803_200_000_000, 9_223_371_331_200_000_000
"""What PostgreSQL can hold, in microseconds since 1970: 4714-11-24 BC to the end of 294276."""
KNOWN = {
    "0044-03-15 00:00:00+00 BC",
    "10000-01-01 00:00:00+00",
    "0001-12-31 23:59:59.5+00 BC",
    "0001-01-01 00:00:00+00",
}


def test_postgresql_writes_the_same(postgres: Postgres) -> None:
    chance = random.Random(7)
    micros = [FIRST, LAST - 1, *(chance.randrange(FIRST, LAST) for _ in range(500))]
    days = [value // 86_400_000_000 for value in micros]
    with postgres.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        times = connection.execute(
            "SELECT (timestamptz 'epoch' + make_interval(days => d, secs => s / 1000000.0))::text "
            "FROM unnest(%s::int[], %s::bigint[]) WITH ORDINALITY AS u (d, s, at) ORDER BY at",
            (days, [value % 86_400_000_000 for value in micros]),
        ).fetchall()
        dates = connection.execute(
            "SELECT (date '1970-01-01' + n)::text FROM unnest(%s::int[]) WITH ORDINALITY AS u (n, at) ORDER BY at",
            (days,),
        ).fetchall()
        known = connection.execute(
            "SELECT t, (extract(epoch FROM t::timestamptz) * 1000000)::bigint FROM unnest(%s::text[]) AS u (t)",
            (sorted(KNOWN),),
        ).fetchall()
    assert [far_text(pa.scalar(n, pa.timestamp("us", "UTC"))) for n in micros] == [text for (text,) in times]
    assert [far_text(pa.scalar(n, pa.date32())) for n in days] == [text for (text,) in dates]
    assert {far_text(pa.scalar(n, pa.timestamp("us", "UTC"))) for _, n in known} == KNOWN
