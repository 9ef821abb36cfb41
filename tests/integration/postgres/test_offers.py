"""What a real publication offers: tables with their columns, types and keys, and why some cannot be read."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.core.specs import TableSpec
from tests.support.upstream_postgres import PUBLICATION, Database


def offered(database: Database, publication: str = PUBLICATION) -> dict[str, ReferenceInfo]:
    spec = database.spec(publication)
    with kind_of(spec).connect(spec, database.connection(), None).upstream() as upstream:
        return {f"{found.namespace}.{found.name}": found for found in upstream.references()}


def types(reference: ReferenceInfo) -> dict[str, str]:
    assert reference.columns is not None
    return {column.name: column.type for column in reference.columns}


def test_a_type_is_ours_where_ours_holds_all_its_values(upstream: Database) -> None:
    fitting = {
        "boolean": "boolean", "smallint": "smallint", "integer": "integer", "bigint": "bigint", "real": "real",
        "double precision": "double", "numeric(10,2)": "numeric(10,2)", "numeric(38)": "numeric(38,0)", "text": "text",
        "varchar(5)": "text", "char(3)": "text", "name": "text", '"char"': "text", "bytea": "bytea", "date": "date",
        "timestamp": "timestamp", "timestamp(3)": "timestamp", "timestamptz": "timestamptz", "json": "text",
        "jsonb": "jsonb", "uuid": "text", "oid": "bigint", "mood": "text", "price": "numeric(10,2)",
        "deep": "numeric(10,2)",
    }  # fmt: skip
    unfit = [
        "numeric", "numeric(39,0)", "numeric(5,-2)", "interval", "time", "timetz", "integer[]", "int4range", "money",
        "bit(3)", "inet", "cidr", "macaddr", "xml", "point", "tsvector", "pair", "mood[]", "amount",
    ]  # fmt: skip
    upstream.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN price AS numeric(10,2) CHECK (VALUE > 0)",
        "CREATE DOMAIN deep AS price",
        "CREATE DOMAIN amount AS numeric",
    )
    columns = [f"c{number} {name}" for number, name in enumerate([*fitting, *unfit])]
    upstream.run(f"CREATE TABLE t (id bigint PRIMARY KEY, {', '.join(columns)})")
    upstream.publish("t")

    found = offered(upstream)["public.t"]
    names = [name for name in types(found) if name != "id"]
    ours = dict(zip([*fitting, *unfit], names, strict=True))
    text_only = dict(found.text_only)
    for name, wanted in fitting.items():
        assert types(found)[ours[name]] == wanted, name
        assert ours[name] not in text_only, name
    for name in unfit:
        assert types(found)[ours[name]] == "text", name
        assert ours[name] in text_only, name
    assert text_only[ours["integer[]"]] == "integer[]"


def test_a_key_is_what_identifies_rows_in_the_stream(upstream: Database) -> None:
    upstream.run(
        "CREATE TABLE by_primary (b int, a int, PRIMARY KEY (a, b))",
        "CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL)",
        "CREATE UNIQUE INDEX by_code ON by_index (code) INCLUDE (id)",
        "ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_code",
        "CREATE TABLE whole (id int PRIMARY KEY, n int)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
    )
    upstream.publish()
    found = offered(upstream)
    assert found["public.by_primary"].keys == ("a", "b")
    assert found["public.by_index"].keys == ("code",)
    assert found["public.whole"].keys == ("id",)
    assert not any(reference.unfit for reference in found.values())


def test_a_table_knows_what_it_was_made_from(upstream: Database) -> None:
    upstream.run("CREATE TABLE t (id int PRIMARY KEY, total numeric(9,2), taken interval)")
    upstream.publish()
    reference, kind = offered(upstream)["public.t"], kind_of(upstream.spec())
    spec = TableSpec(reference="t", namespace="public", format=kind.own_format, envelope=kind.own_envelope)
    made = spec.model_copy(update={"details": kind.export(upstream.spec(), spec, reference)})
    again = TableSpec.model_validate_json(made.model_dump_json())
    assert kind.stored_reference(again) == reference


@pytest.mark.parametrize(
    ("statements", "why", "remedy"),
    [
        (["CREATE TABLE t (a int)"], "has no key", "ADD PRIMARY KEY"),
        (["CREATE TABLE t (a int)", "ALTER TABLE t REPLICA IDENTITY FULL"], "has no key", "ADD PRIMARY KEY"),
        (
            ["CREATE TABLE t (a int PRIMARY KEY DEFERRABLE)"],
            "has no key",
            "REPLICA IDENTITY USING INDEX",
        ),
        (
            ["CREATE TABLE t (a int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY NOTHING"],
            "REPLICA IDENTITY is NOTHING",
            "ALTER TABLE public.t REPLICA IDENTITY DEFAULT",
        ),
        (
            ["CREATE TABLE t (a int NOT NULL UNIQUE)", "ALTER TABLE t REPLICA IDENTITY USING INDEX t_a_key",
             "ALTER TABLE t DROP CONSTRAINT t_a_key"],
            "has no key",
            "ADD PRIMARY KEY",
        ),
    ],
    ids=["none", "full", "deferrable", "nothing", "dropped index"],
)  # fmt: skip
def test_a_table_without_a_key_is_offered_with_what_can_be_done(
    upstream: Database, statements: list[str], why: str, remedy: str
) -> None:
    upstream.run(*statements)
    upstream.publish()
    found = offered(upstream)["public.t"]
    assert why in found.unfit
    assert remedy in found.remedy


def test_columns_that_are_not_published_are_not_offered(upstream: Database) -> None:
    upstream.run(
        "CREATE TABLE t (id int PRIMARY KEY, shown int, twice int GENERATED ALWAYS AS (shown * 2) STORED, hidden int)",
        "ALTER TABLE t DROP COLUMN hidden",
        "ALTER TABLE t ADD COLUMN secret text",
        "CREATE PUBLICATION two FOR TABLE t (id, shown)",
        "CREATE PUBLICATION every FOR TABLE t",
        "CREATE PUBLICATION keyless FOR TABLE t (shown) WITH (publish = 'insert, truncate')",
    )
    assert list(types(offered(upstream, "two")["public.t"])) == ["id", "shown"]
    assert list(types(offered(upstream, "every")["public.t"])) == ["id", "shown", "secret"]
    assert "'id', which is not published" in offered(upstream, "keyless")["public.t"].unfit


def test_a_table_that_would_not_be_whole_is_refused(upstream: Database) -> None:
    upstream.run(
        "CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE filtered (id int PRIMARY KEY)",
        "CREATE PUBLICATION root FOR TABLE part WITH (publish_via_partition_root = true)",
        "CREATE PUBLICATION leaves FOR TABLE part",
        "CREATE PUBLICATION filtering FOR TABLE filtered WHERE (id > 3)",
    )
    assert "partitioned" in offered(upstream, "root")["public.part"].unfit
    leaves = offered(upstream, "leaves")
    assert list(leaves) == ["public.part_1"]
    assert not leaves["public.part_1"].unfit
    assert "row filter" in offered(upstream, "filtering")["public.filtered"].unfit


def test_what_the_user_may_not_see_whole_is_refused(upstream: Database) -> None:
    upstream.run(
        "CREATE TABLE open (id int PRIMARY KEY)",
        "CREATE TABLE closed (id int PRIMARY KEY)",
        "CREATE TABLE secured (id int PRIMARY KEY)",
        "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
        'CREATE SCHEMA "Odd one"',
        'CREATE TABLE "Odd one"."my table" (id int PRIMARY KEY)',
        "DROP ROLE IF EXISTS seer",
        "CREATE ROLE seer LOGIN REPLICATION",
        "GRANT SELECT ON open, secured TO seer",
    )
    upstream.publish()
    try:
        found = offered(Database(upstream.server, upstream.name, user="seer"))
        assert found["public.open"].unfit == ""
        assert "'seer' may not read it" in found["public.closed"].unfit
        assert "row-level security" in found["public.secured"].unfit
        assert "BYPASSRLS" in found["public.secured"].remedy
        # The advice is SQL that works.
        for reference in ("public.closed", "Odd one.my table"):
            upstream.run(*found[reference].remedy.split("; "))
        again = offered(Database(upstream.server, upstream.name, user="seer"))
        assert again["public.closed"].unfit == again["Odd one.my table"].unfit == ""
    finally:
        upstream.run("DROP OWNED BY seer", "DROP ROLE seer")
