"""The same definition through SQL, an operator's arguments and a form is the same statement, or the same error."""

from __future__ import annotations

from typing import Any

import pytest
from jinja2 import Environment

from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.control.sql.script import CreateSource, parse_script
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, TABLE_OPTIONS
from airflow_provider_mzshare.errors import StatementError
from airflow_provider_mzshare.forms import source_definition, source_params, table_definition, table_params
from airflow_provider_mzshare.hooks.definitions import source_statement, table_statement
from airflow_provider_mzshare.operators.sources import CreateSourceOperator

Case = tuple[str, Any, str | None]
"""A value in SQL; as an argument of Python; and as a form sends it, None where it is the same."""
RIGHT: dict[str, list[Case]] = {
    "name": [("'some name'", "some name", None)],
    "whole": [("7", 7, "7")],
    "signed": [("-7", -7, "-7")],
    "wholes": [("(3, 4)", [3, 4], "[3, 4]")],
    "duration": [("'90 seconds'", "90 seconds", None), ("'2 days'", "48h", None)],
    "size": [("'10GB'", "10 gb", None), ("'1048576 B'", "1MB", None)],
    "boolean": [("false", False, None), ("TRUE", "true", None)],
    "names": [('(a, "B c")', ["a", "B c"], "a, B c")],
}
WRONG: dict[str, list[Case]] = {
    "name": [("'" + "n" * 300 + "'", "n" * 300, None), ("'a\nb'", "a\nb", None)],
    "whole": [("many", "many", None), ("99999999999999999999", 99999999999999999999, "99999999999999999999")],
    "signed": [("many", "many", None)],
    "wholes": [("(some)", ["some"], '["some"]')],
    "duration": [("'soon'", "soon", None), ("'3 moons'", "3 moons", None), ("'73000 days'", "73000 days", None)],
    "size": [("'much'", "much", None), ("'3 cups'", "3 cups", None), ("'9999999TB'", "9999999TB", None)],
    "boolean": [("maybe", "maybe", None)],
    "names": [("(a, a)", ["a", "a"], "a, a")],
    "choice": [("'perhaps'", "perhaps", None)],
}


def cases(options: Any, values: dict[str, list[Case]]) -> list[Any]:
    found = []
    for option in options:
        listed = values.get(option.type, [])
        if option.type == "choice" and values is RIGHT:
            listed = [(f"'{choice.upper()}'", choice, None) for choice in option.choices]
        found += [pytest.param(option, case, id=f"{option.name}: {case[0][:20]}") for case in listed]
    return found


def rendered(definition: Any, params: dict[str, Any]) -> Any:
    """As Airflow renders the fields of a task."""
    if isinstance(definition, dict):
        return {key: rendered(value, params) for key, value in definition.items()}
    return Environment(autoescape=False).from_string(definition).render(params=params)


def answer(make: Any) -> Any:
    try:
        return make()
    except StatementError as error:
        return error.problem


def parsed(text: str) -> Any:
    ((statement,),) = (transaction.statements for transaction in parse_script(text))
    return statement


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def table_three_ways(option: Option, case: Case) -> list[Any]:
    literal, value, field = case
    columns = option.type == "names"
    # Some options are only for tables with a key.
    clauses, keyed = KEYED[0]
    given = {"name": "t", **({"format": "none"} if columns else keyed)}
    params = {**{name: param.value for name, param in table_params().items()}, **given}
    params[option.name] = value if field is None else field
    form = rendered(table_definition("t"), params)
    text = f"CREATE TABLE IF NOT EXISTS t FROM SOURCE s {'' if columns else clauses}"
    return [
        answer(lambda: parsed(f"{text} WITH ({option.all_words} {literal})")),
        answer(lambda: table_statement("s", {**given, "options": {option.name: value}})),
        answer(lambda: table_statement("s", form)),
    ]


@pytest.mark.parametrize(("option", "case"), cases(TABLE_OPTIONS.values(), RIGHT))
def test_an_option_of_a_table(option: Option, case: Case) -> None:
    statement, operator, form = table_three_ways(option, case)
    assert not isinstance(statement, str)
    assert statement == operator == form
    assert statement.to_spec("r") == form.to_spec("r")


@pytest.mark.parametrize(("option", "case"), cases(TABLE_OPTIONS.values(), WRONG))
def test_a_wrong_option_of_a_table(option: Option, case: Case) -> None:
    statement, operator, form = table_three_ways(option, case)
    assert isinstance(statement, str)
    assert statement == operator == form


KEYED: list[tuple[str, dict[str, Any]]] = [
    ("FORMAT TEXT INCLUDE KEY ENVELOPE UPSERT", {"format": "text", "include": "key", "envelope": "upsert"}),
    ("KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (a int, \"B\" text), OFFSET ENVELOPE UPSERT",
     {"format": "text", "key_format": "JSON", "key_columns": 'a int, "B" text', "include": "offset",
      "envelope": "Upsert"}),
    ("KEY FORMAT BYTES VALUE FORMAT TEXT INCLUDE KEY", {"format": "text", "key_format": "bytes", "include": "key"}),
    ("FORMAT TEXT INCLUDE KEY ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE)",
     {"format": "text", "include": "key", "envelope": "upsert", "inline_errors": "error"}),
    ("FORMAT TEXT INCLUDE KEY ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE AS \"Why\")",
     {"format": "text", "include": "key", "envelope": "upsert", "inline_errors": "Why"}),
    ("ENVELOPE UPSERT", {"format": "none", "envelope": "upsert"}),
    ("KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (a int) ENVELOPE NONE",
     {"format": "json", "key_format": "json", "key_columns": "a int"}),
    # what does not go together
    ("FORMAT TEXT ENVELOPE UPSERT", {"format": "text", "envelope": "upsert"}),
    ("KEY FORMAT TEXT VALUE FORMAT TEXT", {"format": "text", "key_format": "text"}),
    ("FORMAT TEXT INCLUDE KEY (a int)", {"format": "text", "key_columns": "a int"}),
    ("KEY FORMAT TEXT VALUE FORMAT TEXT INCLUDE KEY (a int)",
     {"format": "text", "key_format": "text", "key_columns": "a int"}),
    ("KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (a double precision) ENVELOPE UPSERT",
     {"format": "text", "key_format": "json", "key_columns": "a double precision", "envelope": "upsert"}),
    ("KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (a bytea)",
     {"format": "text", "key_format": "json", "key_columns": "a bytea"}),
    ("KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (data int)",
     {"format": "text", "key_format": "json", "key_columns": "data int"}),
    ("KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (a int), KEY",
     {"format": "text", "key_format": "json", "key_columns": "a int", "include": "key"}),
    ("FORMAT TEXT INCLUDE KEY, KEY AS k ENVELOPE UPSERT",
     {"format": "text", "include": [{"what": "key"}, {"what": "key", "name": "k"}], "envelope": "upsert"}),
    ("FORMAT TEXT INCLUDE KEY ENVELOPE NONE (VALUE DECODING ERRORS = INLINE)",
     {"format": "text", "include": "key", "inline_errors": "error"}),
    ("FORMAT TEXT INCLUDE KEY ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE AS key)",
     {"format": "text", "include": "key", "envelope": "upsert", "inline_errors": "key"}),
    ("ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE)",
     {"format": "none", "envelope": "upsert", "inline_errors": "error"}),
    ("INCLUDE KEY (a int)", {"format": "none", "key_columns": "a int"}),
]  # fmt: skip


@pytest.mark.parametrize(("clauses", "given"), KEYED, ids=[clauses for clauses, _ in KEYED])
def test_a_table_with_a_key(clauses: str, given: dict[str, Any]) -> None:
    """Also when it is refused, with the same words."""
    said = answer(lambda: parsed(f"CREATE TABLE IF NOT EXISTS t FROM SOURCE s {clauses}"))
    assert said == answer(lambda: table_statement("s", {"name": "t", **given}))
    assert isinstance(said, str) == (KEYED.index((clauses, given)) >= 7)
    fields = {**{name: param.value for name, param in table_params().items()}, **given}
    if isinstance(fields["include"], str | None):
        assert said == answer(lambda: table_statement("s", rendered(table_definition("t"), fields)))


@pytest.mark.parametrize("key", ["b, a", ["b", "a"]], ids=str)
def test_a_table_names_the_columns_of_its_key(key: Any) -> None:
    said = parsed(
        "CREATE TABLE IF NOT EXISTS t (a int, b text, c text, PRIMARY KEY (b, a) NOT ENFORCED) FROM SOURCE s "
        "FORMAT JSON ENVELOPE DEBEZIUM"
    )
    given = {"columns": "a int, b text, c text", "envelope": "debezium", "primary_key": key}
    assert said == table_statement("s", {"name": "t", **given})
    fields = {**{name: param.value for name, param in table_params().items()}, **given, "primary_key": "b, a"}
    assert said == table_statement("s", rendered(table_definition("t"), fields))
    wrong = {"name": "t", **given, "envelope": "none"}
    with pytest.raises(StatementError, match="PRIMARY KEY needs ENVELOPE DEBEZIUM"):
        table_statement("s", wrong)


def test_what_only_an_argument_can_get_wrong() -> None:
    for given, problem in (
        ({"envelope": "update"}, "envelope must be one of none, upsert, debezium, not 'update'"),
        ({"columns": "a int", "envelope": "debezium", "primary_key": "b"},
         "PRIMARY KEY: there is no column b in the list"),
        ({"columns": "a int PRIMARY KEY"}, "columns 'a int PRIMARY KEY': line 1, column 7: PRIMARY KEY is not …"),
        ({"columns": "a int, PRIMARY KEY (a) NOT ENFORCED"},
         "columns 'a int, PRIMARY KEY (a) NOT ENFORCED': line 1, column 8: PRIMARY KEY is not …"),
        ({"key_format": "none"}, "key_format must be one of json, text, bytes, not 'none'"),
        ({"inline_errors": True}, "inline_errors is the name of a column, as 'error', not True"),
        ({"format": "none", "key_format": "json"},
         "KEY FORMAT needs VALUE FORMAT: without it the columns are the upstream's own"),
        ({"key_columns": "a b"}, "key_columns 'a b': line 1, column 3: b is not a column type; there are: …"),
    ):  # fmt: skip
        said = answer(lambda: table_statement("s", {"name": "t", **given}))  # type: ignore[arg-type]  # noqa: B023
        assert said.startswith(problem.removesuffix("…"))


@pytest.mark.parametrize(
    ("clauses", "given"),
    [
        ("(a int, A text) FROM SOURCE s FORMAT JSON", {"columns": 'a int, A text'}),
        ("(_mz_x int) FROM SOURCE s FORMAT JSON", {"columns": [{"name": "_mz_x", "type": "int"}]}),
        ('("a b" int) FROM SOURCE s FORMAT JSON', {"columns": [{"name": "a b", "type": "int"}]}),
        ("(a int) FROM SOURCE s FORMAT TEXT", {"columns": "a int", "format": "text"}),
        ("(a int) FROM SOURCE s FORMAT JSON INCLUDE KEY AS A",
         {"columns": "a int", "include": [{"what": "key", "name": "a"}]}),
        ("(a int) FROM SOURCE s FORMAT JSON INCLUDE KEY, KEY", {"columns": "a int", "include": "key, key"}),
        ("FROM SOURCE s INCLUDE KEY", {"format": "none", "include": "key"}),
        ("FROM SOURCE s FORMAT TEXT INCLUDE OFFSET AS data",
         {"format": "text", "include": [{"what": "offset", "name": "data"}]}),
        ("FROM SOURCE s WITH (TEXT COLUMNS (a), EXCLUDE COLUMNS (a))",
         {"format": "none", "options": {"text_columns": "a", "exclude_columns": "a"}}),
        (f"FROM SOURCE s (REFERENCE \"{'n' * 256}\") FORMAT TEXT", {"format": "text", "reference": "n" * 256}),
        ("FROM SOURCE s (REFERENCE a.b.c.d) FORMAT TEXT", {"format": "text", "reference": ["a", "b", "c", "d"]}),
    ],
)  # fmt: skip
def test_clauses_that_do_not_go_together(clauses: str, given: dict[str, Any]) -> None:
    said = answer(lambda: parsed(f"CREATE TABLE IF NOT EXISTS t {clauses}"))
    assert isinstance(said, str)
    assert said == answer(lambda: table_statement("s", {"name": "t", **given}))


# ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def upstream_text(kind: str, option: str = "") -> tuple[str, dict[str, Any]]:
    """A source of this kind with one more option, as SQL and as arguments."""
    if kind == "kafka":
        topic = "" if option.startswith("TOPIC") else "TOPIC 'x'"
        return f"KAFKA CONNECTION c ({', '.join(filter(None, [topic, option]))})", {"topic": "x"}
    if kind == "postgres":
        publication = option or "PUBLICATION 'x'"
        return f"POSTGRES CONNECTION c ({publication})", {"publication": "x"}
    if kind == "journal":
        return f"JOURNAL {f'({option})' if option else ''}", {}
    return f"LOAD GENERATOR KEY VALUE {f'({option})' if option else ''}", {"generator": "key_value"}


SETTINGS = [case for values in (RIGHT, WRONG) for case in cases(SOURCE_SETTINGS.values(), values)]


@pytest.mark.parametrize(("option", "case"), SETTINGS)
def test_a_setting_of_a_source(option: Option, case: Case) -> None:
    text, upstream = upstream_text("load_generator")
    statement = answer(lambda: parsed(f"CREATE SOURCE IF NOT EXISTS s FROM {text} WITH ({option.all_words} {case[0]})"))
    given = {option.name: case[1] if case[2] is None else case[2]}
    assert statement == answer(lambda: source_statement("s", kind="load_generator", options=given, **upstream))
    assert isinstance(statement, CreateSource) == (case in RIGHT[option.type])


KINDS = [(kind, CONNECTORS.get(kind)) for kind in CONNECTORS.own]


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("kind", [name for name, _ in KINDS])
def test_what_a_kind_of_source_needs_to_know(kind: str, right: bool) -> None:
    values = RIGHT if right else WRONG
    found = CONNECTORS.get(kind)
    tried = 0
    for option in found.options:
        for literal, value, field in values.get(option.type, []):
            text, upstream = upstream_text(kind, f"{option.words} {literal}")
            given = {**upstream, option.name: value}
            begin = {"connection": "c", **upstream, option.name: value if field is None else field}
            params = {name: param.value for name, param in source_params(kind, begin=begin).items()}
            form = rendered(source_definition(kind), params)
            statement = answer(lambda: parsed(f"CREATE SOURCE IF NOT EXISTS s FROM {text}"))  # noqa: B023
            by_operator = answer(lambda: source_statement("s", kind=kind, connection="c", **given))  # noqa: B023
            by_form = answer(
                lambda: source_statement("s", kind=kind, connection=form.get("conn_id"), **form["upstream"])  # noqa: B023
            )
            assert isinstance(statement, CreateSource) == right, (option.words, literal, statement)
            assert statement == by_operator == by_form, option.words
            tried += 1
    assert tried


def test_what_is_missing_excluded_or_of_another_variant() -> None:
    for text, kind, given in (
        ("KAFKA CONNECTION c (START OFFSET (1))", "kafka", {"start_offsets": [1]}),
        ("KAFKA CONNECTION c (TOPIC 't', START OFFSET (1), START TIMESTAMP 2)", "kafka",
         {"topic": "t", "start_offsets": [1], "start_timestamp": 2}),
        ("LOAD GENERATOR COUNTER (KEYS 5)", "load_generator", {"generator": "counter", "keys": 5}),
        ("LOAD GENERATOR KEY VALUE (PARTITIONS 65)", "load_generator", {"generator": "key_value", "partitions": 65}),
    ):  # fmt: skip
        said = answer(lambda: parsed(f"CREATE SOURCE s FROM {text}"))  # noqa: B023
        assert isinstance(said, str)
        assert said == answer(lambda: source_statement("s", kind=kind, connection="c", **given))  # noqa: B023


def test_templates_may_turn_out_to_be_nothing() -> None:
    CreateSourceOperator(task_id="t", source="s", **source_definition("kafka"))
    CreateSourceOperator(task_id="u", source="s", **source_definition("load_generator"))
    with pytest.raises(StatementError, match="a KAFKA source needs TOPIC"):
        CreateSourceOperator(task_id="v", source="s", kafka_conn_id="c")
