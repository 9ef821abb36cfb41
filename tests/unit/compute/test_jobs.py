"""A job file is private, is read once, and its contents are checked without being quoted."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.jobs import AppJob, Exit, read_job_file, write_job_file
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


def test_a_job_survives_its_file_and_the_file_is_gone_after_reading(tmp_path: Path) -> None:
    job = make_job(tmp_path / "jobs" / "ingest-1")
    path = write_job_file(job)
    assert read_job_file(path) == job
    assert not path.exists()


def test_file_and_folder_are_private_also_under_a_loose_umask_and_an_existing_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ingest-1"
    folder.mkdir(mode=0o755)
    path = write_job_file(make_job(folder))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_job_is_written_once(tmp_path: Path) -> None:
    write_job_file(make_job(tmp_path))
    with pytest.raises(FileExistsError):
        write_job_file(make_job(tmp_path))


def test_a_file_others_can_read_is_refused(tmp_path: Path) -> None:
    path = write_job_file(make_job(tmp_path))
    path.chmod(0o640)
    with pytest.raises(BadJobFile, match="not private"):
        read_job_file(path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = write_job_file(make_job(tmp_path))
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(BadJobFile, match="cannot be opened"):
        read_job_file(tmp_path / "link")


@pytest.mark.parametrize("change", [{"version": 1}, {"later_field": 1}, {"lease_seconds": -1}])
def test_another_versions_job_is_refused_without_quoting_it(tmp_path: Path, change: dict[str, object]) -> None:
    path = write_job_file(make_job(tmp_path))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadJobFile, match=next(iter(change))) as caught:
        read_job_file(path)
    assert "hunter2" not in caught.value.line
    assert caught.value.__cause__ is None


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadJobFile, match="No such file"):
        read_job_file(tmp_path / "JOB.json")


def test_spark_settings_outside_the_allow_list_never_enter_a_job(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"spark\.jars"):
        AppJob(**{**make_job(tmp_path).model_dump(), "spark_conf": {"spark.jars": "x"}})


@pytest.mark.parametrize(("kind", "backfill_id"), [("backfill", None), ("ingest", "b-1"), ("other", None)])
def test_a_backfill_and_nothing_else_names_its_backfill(tmp_path: Path, kind: str, backfill_id: str | None) -> None:
    with pytest.raises(ValueError, match="backfill"):
        AppJob(**{**make_job(tmp_path).model_dump(), "kind": kind, "backfill_id": backfill_id})
    made = AppJob(**{**make_job(tmp_path).model_dump(), "kind": "backfill", "backfill_id": "b-1"})
    assert read_job_file(write_job_file(made)) == made


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    assert "hunter2" not in repr(make_job(tmp_path))


def test_exit_codes_are_a_fixed_contract() -> None:
    assert {e.name: int(e) for e in Exit} == {
        "STOPPED": 0, "FAILED": 1, "WRONG_USE": 2, "FENCED": 3, "STALLED": 4, "UNAVAILABLE": 5,
    }  # fmt: skip
