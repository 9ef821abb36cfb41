from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import ERROR_COLUMNS, TYPES, system_columns
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.formats.registry import FORMATS
from airflow_provider_mzshare.storage.fanout import plan as planning
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.results import RESULT_DDL, RESULT_SCHEMA, merge_results
from airflow_provider_mzshare.storage.table_columns import all_columns
from tests.unit.storage.fanout.records import member

ROOT = Path(__file__).parents[4]


def test_plan_survives_the_journey_as_json():
    tables = (
        member(("a", "numeric(10,2)"), ("é", "text"), include=(("key", "k"),), data_path="/d", errors_path="s3://b/e"),
        member(format="bytes", id="u2", stop_on_error=True, data_after=12, errors_after=13),
        member(("a", "text"), id="u3", reference="16385", upstream=(("a", "25"),), visible=(7, "3:9:4,5")),
    )
    for ends in ({}, {"0": (0, 5, 5), "12": (10**15, 10**15 + 1, 10**15 + 9)}):
        plan = FanoutPlan(12, tables, ends)
        assert FanoutPlan.from_json(plan.to_json()) == plan


def test_plan_of_another_version_is_refused():
    fields = {**json.loads(FanoutPlan(1, ()).to_json()), "version": planning.VERSION + 1}
    with pytest.raises(ValueError, match="another version"):
        FanoutPlan.from_json(json.dumps(fields))


def test_every_column_type_has_an_arrow_type():
    assert all(arrow_type("numeric(38,9)" if name == "numeric" else name) for name in TYPES)
    assert arrow_type("numeric(38,9)") == pa.decimal128(38, 9)


@pytest.mark.parametrize("format", ["json", "text", "bytes"])
@pytest.mark.parametrize("columns", [(), (("a", "bigint"), ("b", "jsonb"))])
def test_schema_is_the_one_the_tables_spec_declares(format, columns):
    if columns and format != "json":
        columns = ()
    include = (("key", "k"), ("offset", "o"), ("partition", "p"), ("timestamp", "t"))
    spec = TableSpec(
        reference="t",
        format=format,
        columns=tuple(ColumnSpec(name=name, type=kind) for name, kind in columns),
        include=tuple(Include(what=what, name=name) for what, name in include),
    )
    declared = pa.schema([(column.name, arrow_type(column.type)) for column in all_columns(spec, PARTITIONED)])
    assert data_schema(member(*columns, format=format, include=include)).equals(declared)


def test_errors_schema_is_the_declared_one():
    assert errors_schema().names == [name for name, _ in ERROR_COLUMNS + system_columns(PARTITIONED.stored)]


def test_ddl_names_the_columns_of_the_result_schema():
    names = {pa.string(): "string", pa.int64(): "bigint", pa.int32(): "int"}
    assert ", ".join(f"{each.name} {names[each.type]}" for each in RESULT_SCHEMA) == RESULT_DDL


def result(**fields):
    return {**dict.fromkeys(RESULT_SCHEMA.names), "table_id": "u1", "role": "data", **fields}


def test_results_of_all_tasks_are_summed_per_member():
    high = f"{2**128 - 1:032x}"
    rows = [
        result(path="a", size=1, rows=2, stats="{}", hash=high),
        result(path="b", size=1, rows=3, stats="{}", hash=f"{5:032x}"),
        result(path="c", role="errors", size=1, rows=1, stats="{}", hash=f"{7:032x}"),
        result(table_id="u2", error="OSError: disk full"),
        result(table_id="u3", first_error="late", error_at="[1, 0]"),
        result(table_id="u3", first_error="early", error_at="[0, 9]"),
    ]
    found = merge_results(rows)
    assert (found["u1"].rows("data"), found["u1"].hash("data"), found["u1"].hash("errors")) == (5, 4, 7)
    assert (found["u2"].error, found["u2"].files) == ("OSError: disk full", {"data": [], "errors": []})
    assert (found["u3"].first_error, found["u3"].first_error_at) == ("early", (0, 9))


def test_fanout_loads_only_what_an_executor_has():
    """Besides the standard library, pyarrow and numpy: exactly these modules, which travel with the job. msgspec may be
    missing."""
    targets = [FORMATS.targets[name] for name in ("json", "text", "bytes", "none", "postgres")]
    code = f"""
import json, sys
sys.modules["msgspec"] = None
import airflow_provider_mzshare.storage.fanout.writer, airflow_provider_mzshare.storage.fanout.parts
from airflow_provider_mzshare.core.registry import load
for target in {targets!r}:
    load(target)
others = {{name.split(".")[0] for name, module in sys.modules.items() if module}} - set(sys.stdlib_module_names)
ours = [name for name in sys.modules if name.startswith("airflow_provider_mzshare")]
print(json.dumps([sorted(ours), sorted(name for name in others if not name.startswith("_"))]))
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    ours, others = json.loads(out)
    package = ROOT / "airflow_provider_mzshare"
    fanout = (path.stem for path in (package / "storage" / "fanout").glob("[a-z]*.py"))
    formats = (path.stem for path in (package / "formats").glob("[a-z]*.py") if path.stem != "registry")
    travelling = [
        "",
        ".connectors",
        ".connectors.places",
        ".connectors.record_times",
        ".connectors.records",
        ".core",
        ".core.arrow_types",
        ".core.registry",
        ".core.schema",
        ".envelopes",
        ".envelopes.base",
        ".errors",
        ".formats",
        *(f".formats.{n}" for n in formats),
        ".storage",
        ".storage.fanout",
        *(f".storage.fanout.{n}" for n in fanout),
    ]
    assert ours == sorted(f"airflow_provider_mzshare{name}" for name in travelling)
    assert set(others) <= {"airflow_provider_mzshare", "cython_runtime", "numpy", "pyarrow"}
