"""Deletion vectors: what is written is read again, and damage does not pass for a vector."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from airflow_provider_mzshare.storage.collections.log import open_filesystem
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import (
    Vector,
    bitmap_of,
    read_vector,
    rows_of,
    vector_file,
)

PYTHONS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
ROWS = st.sets(st.integers(0, 70_000) | st.integers(0, 2**32 - 1), max_size=50)


@given(sets=st.lists(ROWS, max_size=4))
def test_the_vectors_of_a_file_are_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, sets: list[set[int]]
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    made = vector_file([BitMap(rows) for rows in sets])
    Path(folder, made.path).write_bytes(made.content)
    files = open_filesystem(str(folder))
    assert [set(read_vector(files, vector)) for vector in made.vectors] == sets
    assert [vector.cardinality for vector in made.vectors] == [len(rows) for rows in sets]
    assert all(vector.path == made.path and Vector.from_log(vector.to_log()) == vector for vector in made.vectors)


def test_a_damaged_vector_is_told_from_a_vector(tmp_path: Path) -> None:
    made = vector_file([BitMap([1, 2]), BitMap(range(10_000))])
    files = open_filesystem(str(tmp_path))
    for position in (7, len(made.content) - 5):
        spoiled = bytearray(made.content)
        spoiled[position] ^= 1
        Path(tmp_path, made.path).write_bytes(bytes(spoiled))
        with pytest.raises(ValueError, match=made.path):
            [read_vector(files, vector) for vector in made.vectors]
    Path(tmp_path, made.path).write_bytes(made.content[:-3])
    with pytest.raises(ValueError, match="holds no vector"):
        read_vector(files, made.vectors[1])


def test_a_vector_that_stands_in_the_log_itself(tmp_path: Path) -> None:
    data = vector_file([BitMap([3, 70_000])]).content[5:-4]
    where = base64.b85encode(data, pad=True).decode().translate(str.maketrans(PYTHONS, Z85))
    vector = Vector("i", where, None, len(data), 2)
    assert vector.path is None
    assert list(read_vector(open_filesystem(str(tmp_path)), vector)) == [3, 70_000]
    with pytest.raises(ValueError, match="another mark"):
        read_vector(open_filesystem(str(tmp_path)), replace(vector, where="0" + where[1:]))


def test_the_name_of_a_file_as_the_protocol_says_it() -> None:
    vector = Vector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert vector.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_rows_and_bitmaps() -> None:
    rows = np.array([5, 1, 2**31], np.int64)
    assert rows_of(bitmap_of(rows)).tolist() == [1, 5, 2**31]
    assert rows_of(BitMap()).tolist() == []
