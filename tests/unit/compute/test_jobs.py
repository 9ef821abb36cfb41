"""A job file is private, is read once, and its contents are checked without being quoted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.jobs import AppJob, Exit, open_job, read_job
from airflow_provider_mzshare.errors import BadJobFile, BadSetting


def make_job(folder: Path) -> AppJob:
    return AppJob(
        job_id="ingest-1",
        source_id="u1",
        source_name="public.s",
        catalog_url="postgresql+psycopg://u:hunter2@h/d",
        warehouse="/wh",
        master="local[1]",
        connection={"conn_type": "kafka", "extra": {"sasl.password": "hunter2"}},
        folder=folder,
        spark_conf={"spark.driver.memory": "1g"},
        jars=["/jars/a.jar"],
    )


def write_job_file(job: AppJob) -> Path:
    """As somebody does who starts an app by hand."""
    path = job.folder / "JOB.json"
    path.touch(mode=0o600)
    path.write_text(job.model_dump_json(), encoding="utf-8")
    return path


def test_a_job_reaches_an_app_as_its_standard_input_and_is_let_go_of(tmp_path: Path) -> None:
    """One longer than what a pipe takes before somebody reads."""
    job = make_job(tmp_path).model_copy(update={"source_name": "é" * 200_000})
    app = (
        "import os, sys; from airflow_provider_mzshare.compute.jobs import read_job; job = read_job('-'); "
        "print(len(job.source_name), job.catalog_url, os.readlink('/proc/self/fd/0'))"
    )
    with open(open_job(job), "rb") as told:
        ran = subprocess.run([sys.executable, "-c", app], stdin=told, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["200000", job.catalog_url, "/dev/null"]


def test_a_job_that_was_cut_short_is_one_clear_error(tmp_path: Path) -> None:
    app = "from airflow_provider_mzshare.compute.jobs import read_job; read_job('-')"
    text = make_job(tmp_path).model_dump_json()[:-40]
    ran = subprocess.run([sys.executable, "-c", app], input=text, capture_output=True, text=True, check=False)
    assert "BadJobFile: this version of mzshare cannot run the job: the whole" in ran.stderr
    assert "hunter2" not in ran.stderr


def test_a_file_is_gone_after_reading(tmp_path: Path) -> None:
    path = write_job_file(make_job(tmp_path))
    assert read_job(str(path)) == make_job(tmp_path)
    assert not path.exists()


def test_a_file_others_can_read_is_refused(tmp_path: Path) -> None:
    path = write_job_file(make_job(tmp_path))
    path.chmod(0o640)
    with pytest.raises(BadJobFile, match="not private"):
        read_job(str(path))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = write_job_file(make_job(tmp_path))
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(BadJobFile, match="cannot be opened"):
        read_job(str(tmp_path / "link"))


@pytest.mark.parametrize("change", [{"version": 1}, {"later_field": 1}, {"lease_seconds": -1}])
def test_another_versions_job_is_refused_without_quoting_it(tmp_path: Path, change: dict[str, object]) -> None:
    path = write_job_file(make_job(tmp_path))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadJobFile, match=next(iter(change))) as caught:
        read_job(str(path))
    assert "hunter2" not in caught.value.line
    assert caught.value.__cause__ is None


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadJobFile, match="No such file"):
        read_job(str(tmp_path / "JOB.json"))


def test_spark_settings_outside_the_allow_list_never_enter_a_job(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"spark\.jars"):
        AppJob(**{**make_job(tmp_path).model_dump(), "spark_conf": {"spark.jars": "x"}})


@pytest.mark.parametrize(("kind", "backfill_id"), [("backfill", None), ("ingest", "b-1"), ("other", None)])
def test_a_backfill_and_nothing_else_names_its_backfill(tmp_path: Path, kind: str, backfill_id: str | None) -> None:
    with pytest.raises(ValueError, match="backfill"):
        AppJob(**{**make_job(tmp_path).model_dump(), "kind": kind, "backfill_id": backfill_id})
    made = AppJob(**{**make_job(tmp_path).model_dump(), "kind": "backfill", "backfill_id": "b-1"})
    assert read_job(str(write_job_file(made))) == made


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    assert "hunter2" not in repr(make_job(tmp_path))


def test_exit_codes_are_a_fixed_contract() -> None:
    assert {e.name: int(e) for e in Exit} == {
        "STOPPED": 0, "FAILED": 1, "WRONG_USE": 2, "FENCED": 3, "STALLED": 4, "UNAVAILABLE": 5,
    }  # fmt: skip
