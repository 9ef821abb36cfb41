"""Whose fault an error is, by its number alone."""

from __future__ import annotations

import errno

import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from airflow_provider_mzshare.errors import CommitUnclear, WarehouseUnreachable
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENOSPC, "full"),
        (errno.EDQUOT, "full"),
        (errno.EROFS, "read_only"),
        (errno.EIO, "away"),
        (errno.ESTALE, "away"),
        (errno.ENOTCONN, "away"),
        (errno.ENOENT, None),
        (errno.EPERM, None),
        (errno.EACCES, None),
        (errno.EFBIG, None),
    ],
)
def test_the_number_decides_wherever_it_is(number: int, fault: str | None) -> None:
    rust = f"Generic LocalFileSystem error\n ↳ Unable to copy data to file\n ↳ whatever it says (os error {number})\n"
    for error in (
        OSError(number, "whatever it says"),
        OSError(rust),
        DeltaError(f"Failed to parse parquet: External: {rust}"),
        OSError(f"Error writing bytes to file. Detail: [errno {number}] whatever"),
    ):
        assert fault_of(error) == fault
        assert fault_of(_wrapped(error)) == fault


def _wrapped(error: Exception) -> Exception:
    try:
        try:
            raise WarehouseUnreachable("u1", "it cannot be created") from error
        except WarehouseUnreachable as inner:
            raise CommitUnclear("is not there") from inner
    except CommitUnclear as outer:
        return outer


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Job aborted.\n\tCaused by: java.io.IOException: No space left on device\n\tat java.base/…", "full"),
        ("java.nio.file.FileSystemException: /scratch/blockmgr: Disk quota exceeded", "full"),
        ("java.io.FileNotFoundException: /scratch/x (Read-only file system)", "read_only"),
        ("  File 'worker.py'\nOSError: [Errno 28] No space left on device", "full"),
        ("ValueError: {'text': 'No space left on device (os error 28)'}", None),
        ("java.io.IOException: Connection reset by peer", None),
    ],
)
def test_of_what_spark_tells_only_its_own_input_and_output_counts(text: str, fault: str | None) -> None:
    assert fault_of(PySparkException(text)) == fault


def test_a_record_that_is_quoted_decides_nothing() -> None:
    assert fault_of(ValueError("not a number: 'No space left on device (os error 28) [errno 28]'")) is None


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert fault_of(one) is None
