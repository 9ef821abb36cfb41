"""Records as no client library writes them, sent in Kafka's own protocol: any time, any bytes as a header's name."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka

_PRODUCE, _VERSION, _ALL_REPLICAS, _TIMEOUT_MS = 0, 3, -1, 30_000
_MAGIC, _NOBODY = 2, -1
_CASTAGNOLI = 0x82F63B78


class RawRecord(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def send_raw(kafka: EmbeddedKafka, topic: str, records: Sequence[RawRecord], *, partition: int = 0) -> int:
    """One batch, in one request; the offset of its first record. The broker must be the partition's leader."""
    batch = _batch(records)
    body = struct.pack(">hhi", _NOBODY, _ALL_REPLICAS, _TIMEOUT_MS)
    body += struct.pack(">i", 1) + _text(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    request = struct.pack(">hhi", _PRODUCE, _VERSION, 1) + _text("raw") + body
    host, port = kafka.bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    _, error, offset = struct.unpack_from(">ihq", answer, 4 + 4 + 2 + len(topic.encode()) + 4)
    assert error == 0, f"the broker refused the batch: error {error}"
    return int(offset)


def _batch(records: Sequence[RawRecord]) -> bytes:
    base, latest = records[0].timestamp, max(record.timestamp for record in records)
    content = b"".join(_record(number, record, base) for number, record in enumerate(records))
    counted = struct.pack(">hiqqqhii", 0, len(records) - 1, base, latest, _NOBODY, _NOBODY, _NOBODY, len(records))
    summed = counted + content
    return struct.pack(">qiibI", 0, len(summed) + 9, 0, _MAGIC, _checksum(summed)) + summed


def _record(number: int, record: RawRecord, base: int) -> bytes:
    # Two times may lie further apart than 64 bits tell: readers add up modulo 2^64, as Java does.
    apart = (record.timestamp - base + 2**63) % 2**64 - 2**63
    parts = [b"\0", _varint(apart), _varint(number), _bytes(record.key), _bytes(record.value)]
    parts += [_varint(len(record.headers)), *(_bytes(part) for header in record.headers for part in header)]
    content = b"".join(parts)
    return _varint(len(content)) + content


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _bytes(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    digits = bytearray()
    while left > 0x7F:
        digits.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*digits, left])


def _checksum(content: bytes) -> int:
    """CRC-32C, which the standard library lacks."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_CASTAGNOLI if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
