"""Deletion vectors as Delta stores them: which rows of a file are no longer there. Knows bytes, and no log.

The vectors of a commit are in one file: a byte for the version, then for each vector its size, its bytes and their
checksum. The bytes are a mark and a set of 64-bit numbers in Roaring's portable form.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.fs as pafs
from pyroaring import BitMap, BitMap64

PREFIX = "deletion_vector_"
_FORMAT = b"\x01"
_MAGIC = struct.pack("<i", 1681511377)
_ONE_BITMAP = struct.pack("<qi", 1, 0)
"""Row numbers fit into 32 bits: one bitmap, for the upper half 0."""
_UUID_CHARACTERS = 20

_PYTHONS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_PYTHONS, _Z85), bytes.maketrans(_Z85, _PYTHONS)

Rows = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Vector:
    """Where a vector is, as log entries say it.

    :param storage: ``u``: in a file of the collection; ``i``: in the entry itself; ``p``: at an absolute path.
    :param size: of its bytes, without size and checksum.
    :param cardinality: how many rows it takes away.
    """

    storage: str
    where: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def from_log(cls, found: Mapping[str, Any] | None) -> Vector | None:
        if not found:
            return None
        offset = found.get("offset")
        size, cardinality = found["sizeInBytes"], found["cardinality"]
        return cls(found["storageType"], found["pathOrInlineDv"], offset, size, cardinality)

    def to_log(self) -> dict[str, Any]:
        offset = {} if self.offset is None else {"offset": self.offset}
        fields = {"storageType": self.storage, "pathOrInlineDv": self.where, **offset}
        return {**fields, "sizeInBytes": self.size, "cardinality": self.cardinality}

    @property
    def path(self) -> str | None:
        """The file that holds it, relative to the collection; None if no file of the collection does."""
        if self.storage != "u":
            return None
        folder, name = self.where[:-_UUID_CHARACTERS], self.where[-_UUID_CHARACTERS:]
        file = f"{PREFIX}{uuid.UUID(bytes=_from_z85(name))}.bin"
        return f"{folder}/{file}" if folder else file


@dataclass(frozen=True)
class VectorFile:
    """The vectors of one commit: the file's name and content, and where each of them is."""

    path: str
    content: bytes
    vectors: tuple[Vector, ...]


def vector_file(bitmaps: Sequence[BitMap]) -> VectorFile:
    """A new file for vectors, in the order in which they were given. Nothing is written."""
    name = uuid.uuid4()
    where, parts, offset, vectors = _to_z85(name.bytes), [_FORMAT], len(_FORMAT), []
    for bitmap in bitmaps:
        data = _MAGIC + _ONE_BITMAP + bitmap.serialize()
        parts += [struct.pack(">i", len(data)), data, struct.pack(">I", zlib.crc32(data))]
        vectors.append(Vector("u", where, offset, len(data), len(bitmap)))
        offset += len(data) + 8
    return VectorFile(f"{PREFIX}{name}.bin", b"".join(parts), tuple(vectors))


def read_vector(filesystem: pafs.FileSystem, vector: Vector) -> BitMap:
    """The rows that it takes away. Raises ValueError where its bytes are not whole.

    :param filesystem: the collection's folder.
    """
    if vector.storage == "i":
        return _deserialized(_from_z85(vector.where)[: vector.size])
    if vector.path is None:
        raise ValueError(f"a deletion vector at the absolute path {vector.where} is not read")
    with filesystem.open_input_file(vector.path) as file:
        file.seek(vector.offset or 0)
        found = file.read(vector.size + 8)
    if len(found) != vector.size + 8 or struct.unpack(">i", found[:4])[0] != vector.size:
        raise ValueError(f"{vector.path} holds no vector of {vector.size} bytes at {vector.offset}")
    data = found[4:-4]
    if zlib.crc32(data) != struct.unpack(">I", found[-4:])[0]:
        raise ValueError(f"{vector.path} is damaged: the vector at {vector.offset} does not have its checksum")
    return _deserialized(data)


def _deserialized(data: bytes) -> BitMap:
    if data[:4] != _MAGIC:
        raise ValueError("a deletion vector begins with another mark")
    if data[4:16] == _ONE_BITMAP:
        return BitMap.deserialize(data[16:])
    return BitMap(list(BitMap64.deserialize(data[4:])))


def bitmap_of(rows: npt.NDArray[np.integer[Any]]) -> BitMap:
    return BitMap(array("I", rows.astype(np.uint32).tobytes()))


def rows_of(bitmap: BitMap) -> Rows:
    """In ascending order."""
    return np.frombuffer(bitmap.to_array(), np.uint32) if bitmap else np.array([], np.uint32)


def staying(gone: BitMap, first: int, count: int) -> npt.NDArray[np.bool_]:
    """Which of ``count`` rows from ``first`` on are still there."""
    rows = rows_of(gone)
    start, end = np.searchsorted(rows, (first, first + count))
    mask = np.ones(count, np.bool_)
    mask[rows[start:end].astype(np.int64) - first] = False
    return mask


def _to_z85(data: bytes) -> str:
    return base64.b85encode(data).translate(_TO_Z85).decode()


def _from_z85(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))
