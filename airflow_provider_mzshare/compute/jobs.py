"""What an app is given when it is started, as a versioned value. It need not be on a disk. No catalog, no Spark."""

from __future__ import annotations

import os
import stat
import tempfile
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from airflow_provider_mzshare.errors import BadJobFile
from airflow_provider_mzshare.folders import PRIVATE
from airflow_provider_mzshare.settings import check_spark_conf

STANDARD_INPUT = "-"
LOG_FILE = "log"

AppKind = Literal["ingest", "backfill"]
"""Which app a job runs, and the name of its file."""
APP_KINDS: tuple[AppKind, ...] = get_args(AppKind)


class Exit(IntEnum):
    """How an app ends, as its exit code."""

    STOPPED = 0
    """Asked to, or nothing was left to do (no tables)."""
    FAILED = 1
    """An error that a new start may get over."""
    WRONG_USE = 2
    """No job file, or one that cannot be used."""
    FENCED = 3
    """Another job holds the lease: it took the lease while this job ran, or had it before."""
    STALLED = 4
    """The source itself cannot go on; a new start would not either."""
    UNAVAILABLE = 5
    """Spark did not start or the connection failed. The work had not begun, so no table is to blame."""


class AppJob(BaseModel):
    """Everything an app of one source needs. ``catalog_url`` and ``connection`` are secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[2] = 2
    kind: AppKind = "ingest"
    job_id: str
    source_id: str
    source_name: str
    backfill_id: str | None = None
    """Whose tables a backfill brings up."""
    catalog_url: str = Field(repr=False)
    warehouse: str
    master: str
    connection: dict[str, Any] | None = Field(repr=False)
    """The resolved connection, in the dict form that storage gives and takes; None for a kind that needs none."""
    folder: Path
    """The job's own folder: its log, and scratch such as checkpoints."""
    lease_seconds: float = Field(default=15.0, gt=0)
    heartbeat_seconds: float = Field(default=3.0, gt=0)
    spark_conf: dict[str, str] = Field(default_factory=dict)
    jars: list[str] = Field(default_factory=list)
    key_index_mb: int | None = Field(default=None, ge=0)
    """The memory that its indexes of keys may take; None: a part of the memory of the machine that it runs on."""
    umask: int = Field(default=PRIVATE, ge=0, le=PRIVATE)
    """The umask of the app and of all processes that it starts."""

    @field_validator("spark_conf")
    @classmethod
    def _allowed(cls, value: dict[str, str]) -> dict[str, str]:
        return check_spark_conf(value)

    @model_validator(mode="after")
    def _knows_its_backfill(self) -> AppJob:
        if (self.kind == "backfill") != (self.backfill_id is not None):
            raise ValueError("a backfill, and nothing else, has a backfill_id")
        return self


def open_job(job: AppJob) -> int:
    """The job as an open file without a name, for an app's standard input. It is gone when no process has it open.

    Not a pipe, which takes 64 KiB before somebody reads, and certificates may be longer.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("mzshare-job")
    else:
        with tempfile.TemporaryFile() as unnamed:
            descriptor = os.dup(unnamed.fileno())
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file:
        file.write(job.model_dump_json())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def read_job(name: str) -> AppJob:
    """:param name: ``-``, for standard input; or a file, for one who starts an app by hand: it is removed when read."""
    text = _read_input() if name == STANDARD_INPUT else _read_file(Path(name))
    try:
        return AppJob.model_validate_json(text)
    except ValidationError as error:
        # The error's own text quotes the input, which holds secrets.
        fields = ", ".join(sorted({".".join(map(str, e["loc"])) or "the whole" for e in error.errors()}))
        raise BadJobFile(f"this version of mzshare cannot run the job: {fields}") from None


def _read_input() -> str:
    """Read all of it, then close it: processes that this one starts must not read it."""
    with os.fdopen(os.dup(0), encoding="utf-8") as file:
        text = file.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return text


def _read_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise BadJobFile(f"the job file {path} cannot be opened: {error.strerror}") from error
    with os.fdopen(descriptor, encoding="utf-8") as file:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise BadJobFile(f"the job file {path} is not private to this user")
        text = file.read()
    path.unlink()
    return text
