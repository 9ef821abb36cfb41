"""Only formats/ knows formats by name: whoever else wants to know something of one asks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.formats.registry import FORMATS

ROOT = Path(__file__).parents[3]
FOLDERS = ("airflow_provider_mzshare", "spark_apps", "dags")

OTHER_THINGS = {
    "airflow_provider_mzshare/cli/jars.py": "the size of a jar",
    "airflow_provider_mzshare/cli/migrate.py": "what becomes of an object: nothing",
    "airflow_provider_mzshare/connectors/kafka/config.py": "whether a broker's host name is checked",
    "airflow_provider_mzshare/connectors/kafka/java_settings.py": "whether a broker's host name is checked",
    "airflow_provider_mzshare/connectors/places.py": "the column type text",
    "airflow_provider_mzshare/connectors/registry.py": "a kind of source",
    "airflow_provider_mzshare/control/catalog/database/databases.py": "the catalog's database",
    "airflow_provider_mzshare/control/catalog/log/statistics.py": "a count of bytes",
    "airflow_provider_mzshare/control/lifecycle/table_plans.py": "a count of bytes",
    "airflow_provider_mzshare/control/sql/checks.py": "the type of an option",
    "airflow_provider_mzshare/control/sql/column_types.py": "a spelling of the type jsonb",
    "airflow_provider_mzshare/control/sql/options.py": "the type of an option",
    "airflow_provider_mzshare/core/arrow_types.py": "the column type text",
    "airflow_provider_mzshare/envelopes/registry.py": "the name of an envelope",
    "airflow_provider_mzshare/hooks/exports.py": "the kind of file that an export writes",
    "airflow_provider_mzshare/plugins/status_page.py": "the output of the status page",
    "airflow_provider_mzshare/settings.py": "the scheme of a URL",
    "airflow_provider_mzshare/storage/apps/ticking.py": "a count of bytes",
}
"""Words that are also names of formats, and what they mean there."""


def test_nobody_else_compares_with_a_formats_name() -> None:
    found = {str(file.relative_to(ROOT)): names for file in _files() if (names := list(_compared(file.read_text())))}
    assert found.keys() - OTHER_THINGS.keys() == set(), f"ask the format instead: {found}"
    assert OTHER_THINGS.keys() - found.keys() == set(), "no longer needed"


@pytest.mark.parametrize(
    "code",
    [
        'spec.format == "json"',
        '"none" != spec.format',
        'written in ("text", "avro")',
        'kind not in frozenset({"bytes"})',
        'TYPES = {"json": 1}[spec.format]',
        'match spec.format:\n    case "bytes" | "text":\n        pass',
    ],
)
def test_a_comparison_is_found(code: str) -> None:
    assert list(_compared(code))
    unlike = code.replace('"json"', '"j"').replace('"text"', '"t"').replace('"bytes"', '"b"').replace('"none"', '"n"')
    assert not list(_compared(unlike))


def _files() -> Iterator[Path]:
    own = ROOT / "airflow_provider_mzshare" / "formats"
    for folder in FOLDERS:
        yield from (file for file in sorted((ROOT / folder).rglob("*.py")) if not file.is_relative_to(own))


def _compared(code: str) -> Iterator[str]:
    """Names of formats in comparisons, keys of dictionaries and cases."""
    for node in ast.walk(ast.parse(code)):
        looked_at: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            looked_at = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            looked_at = [key for key in node.keys if isinstance(key, ast.Constant)]
        elif isinstance(node, ast.MatchValue):
            looked_at = [node.value]
        for part in looked_at:
            yield from (n.value for n in ast.walk(part) if isinstance(n, ast.Constant) and n.value in FORMATS.own)
