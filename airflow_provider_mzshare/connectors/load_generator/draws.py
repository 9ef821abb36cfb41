"""Numbers and texts drawn from a seed: the same at any time, on any machine, in any order. Many at once.

A generator of random numbers would have to be run from the beginning to know its millionth number. Here each number is
the hash of where it is, in arithmetic that is the same everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Columns = dict[str, pa.Array]
"""The columns of generated rows."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ONE = np.uint64(1)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", np.uint8)
"""64 letters."""


def words(seed: int, what: str, numbers: Ints | Words) -> Words:
    """64 bits for each number; ``what`` tells apart what is drawn for the same one."""
    begin = int.from_bytes(hashlib.blake2b(f"{seed}:{what}".encode(), digest_size=8).digest(), "little")
    mixed: Words = numbers.astype(np.uint64) * _GOLDEN + np.uint64(begin)
    for shift, factor in zip(_SHIFTS, (*_MIX, _ONE), strict=True):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return mixed


def below(seed: int, what: str, numbers: Ints, limits: Ints | int) -> Ints:
    """A whole number from 0 on and below the limit, for each number. That it is not quite even is fine."""
    drawn = words(seed, what, numbers) % np.asarray(limits).astype(np.uint64)
    return drawn.astype(np.int64)


def choices(seed: int, what: str, numbers: Ints, texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(below(seed, what, numbers, len(texts))))


def letters(seed: int, what: str, numbers: Ints, size: int) -> pa.Array:
    """A text of ``size`` letters for each number."""
    per_row = -(-size // 8)
    # One number for each eight letters of each row; wrapping around is as good as not.
    places = numbers.astype(np.uint64)[:, None] * np.uint64(per_row) + np.arange(per_row, dtype=np.uint64)
    drawn = words(seed, what, places.reshape(-1)).astype("<u8").view(np.uint8).reshape(len(numbers), per_row * 8)
    raw = _LETTERS[drawn[:, :size] & 63]
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(size)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(raw)))


def moments(milliseconds: Ints) -> pa.Array:
    """From milliseconds since 1970; as text they are ``YYYY-MM-DD HH:MM:SS.fffZ``."""
    return pa.array(milliseconds).cast(pa.timestamp("ms", "UTC"))
