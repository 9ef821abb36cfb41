"""The command ``mzshare sql`` with SELECT, in each output; and the examples of the page about relations."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airflow_provider_mzshare.cli.main import app
from tests.integration.relations.test_description import DOCS
from tests.support.relations import Described

SETUP = "CREATE SOURCE orders FROM LOAD GENERATOR AUCTION; CREATE TABLE bids FROM SOURCE orders (REFERENCE bids)"


def test_the_answer_comes_in_each_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path))
    query = "SELECT id, snapshot, details -> 'partitions' AS p, data_config FROM mz_source_exports"

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["sql", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    run(SETUP)
    (answer,) = json.loads(run("--output", "json", query))
    config = {"encoding": "none", "envelope": "none"}
    assert answer["rows"] == [{"id": "u2", "snapshot": True, "p": [4], "data_config": config}]
    header, row = csv.reader(io.StringIO(run("--output", "csv", query)))
    assert header == ["id", "snapshot", "p", "data_config"]
    assert row[:3] == ["u2", "true", "[4]"]
    assert json.loads(row[3]) == config
    assert re.search(r"u2 +\| +true \| \[4\]", run(query))


def test_what_the_page_about_relations_shows_works(described: Described) -> None:
    described.run(SETUP)
    examples = re.findall(r"^```sql\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    grants = [example for example in examples if "GRANT" in example]
    assert (len(examples), len(grants)) == (3, 1)
    for example in examples:
        if example not in grants:
            assert described.run(example)
