"""Files of records, one a line, as messages: the line itself, or a JSON object of key, value, headers and timestamp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

import msgspec
import pyarrow as pa

from airflow_provider_mzshare.storage.journal.records import RECORD_BYTES, BadRecord, MessageChunk

LineFormat = Literal["lines", "jsonl"]
_READ = 1 << 20
_NULL = msgspec.Raw(b"null")


class Readable(Protocol):
    """A buffered file of bytes."""

    def read1(self, size: int, /) -> bytes:
        """What is there, as soon as there is something."""
        ...


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw
    key: msgspec.Raw = _NULL
    headers: dict[str, str | None] | list[tuple[str, str | None]] | None = None
    timestamp: str | int | None = None


_DECODER = msgspec.json.Decoder(_Line)


def messages_of_file(file: Readable, line_format: LineFormat) -> Iterator[pa.RecordBatch]:
    """Of a pipe, the lines that were written so far, without waiting for more. An error names the line's number."""
    chunk, number = MessageChunk(unit="line"), 0
    for lines in _lines(file):
        for line in lines:
            number += 1
            if line_format == "lines":
                chunk.add(line, number=number)
            elif line.strip():
                chunk.add(_taken_apart(line, number), number=number)
            if chunk.is_full:
                yield chunk.taken()
        if len(chunk):
            yield chunk.taken()


def _lines(file: Readable) -> Iterator[list[bytes]]:
    """Without their ends; the last one may have none."""
    rest, count = b"", 0
    while read := file.read1(_READ):
        *lines, rest = (rest + read).split(b"\n")
        count += len(lines)
        if len(rest) > RECORD_BYTES:
            raise BadRecord(count + 1, f"it has more than {RECORD_BYTES} bytes, which a record may have", unit="line")
        yield lines
    if rest:
        yield [rest]


def _taken_apart(line: bytes, number: int) -> dict[str, Any]:
    try:
        found = _DECODER.decode(line)
        key, value = _text(found.key), _text(found.value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRecord(number, f"it is no record: {error}", unit="line") from None
    return {"key": key, "value": value, "headers": found.headers, "timestamp": found.timestamp}


def _text(raw: msgspec.Raw) -> bytes | str | None:
    """A string is what it stands for; an object, an array, a number is the text as it is written there."""
    text = bytes(raw)
    if text == b"null":
        return None
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else text
