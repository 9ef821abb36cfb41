"""What ``verify`` says to people."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_mzshare.cli.verify import _sentence
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.lifecycle.verified import KeyDiffers, Verified, VerifiedRange

VERIFIED = Verified(
    table="t",
    tick=5,
    partitions=(VerifiedRange(0, 0, 100, 7, 2),),
    rows=7,
    errors=2,
    data_hash="",
    errors_hash="",
    seconds=2.0,
    verdict="exact",
)


def test_rows_and_keys_are_told_apart() -> None:
    assert _sentence(VERIFIED) == (
        "t is exact at tick 5: 7 rows and 2 errors match the upstream, each exactly once (0:0-100; 2.0 s, 4/s)"
    )
    assert _sentence(replace(VERIFIED, key=("id",))) == (
        "t is exact at tick 5: the rows of 7 keys and 2 errors match the upstream, each exactly once "
        "(0:0-100; 2.0 s, 50/s)"
    )
    gone = replace(VERIFIED, key=("id",), verdict="unverifiable", reason="3 keys are gone", unverifiable_keys=3)
    assert _sentence(gone) == "t is unverifiable: 3 keys are gone"
    assert gone.to_json()["unverifiable_keys"] == 3


def test_a_key_is_told_with_both_places() -> None:
    def told(what: str, upstream: tuple[int, int] | None, stored: tuple[int, int] | None) -> str:
        key = {"a": 1, "raw": b"\xff"}
        text = KeyDiffers("t", PARTITIONED, what, key, upstream, stored).message
        begin = """table 't' is not exact: key {"a": 1, "raw": "b'\\\\xff'"} has """
        assert text.startswith(begin)
        return text.removeprefix(begin)

    here, there = "partition 0, offset 3", "partition 1, offset 9"
    assert told("missing", (1, 9), None) == f"no row; its last record upstream is {there}"
    assert told("double", (1, 9), (0, 3)) == f"several rows, one of {here}"
    assert told("differs", (0, 3), (0, 3)) == f"another row than its record upstream says, {here}"
    assert told("differs", (1, 9), (0, 3)) == f"a row of {here}; its last record upstream is {there}"
    assert (
        told("not upstream", (1, 9), (0, 3)) == f"a row of {here}; its last record upstream, {there}, does not say so"
    )
    assert told("not upstream", None, (0, 3)) == f"a row of {here}, and no such record upstream"
