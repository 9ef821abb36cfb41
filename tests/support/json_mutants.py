"""JSON records and what becomes of them when bytes are lost, doubled, moved or replaced: the same ones for a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from airflow_provider_mzshare.core.schema import TYPES

EXACT = ("numeric(5,2)", "numeric(38,9)", "numeric(38,38)")
COLUMN_TYPES = (*(name for name in TYPES if name != "numeric"), *EXACT)
"""One field each, of the same name as its type."""

NUMBERS = (
    "0", "-0", "7", "-1", "1.5", "1.50", "1.0", "-0.0", "12.345", "1e3", "1E+5", "1e400", "-1e400", "1e-400",
    "32767", "32768", "2147483648", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "123456789012345678901234567890.123456789", "0.1e1", "0e99",
    "0.30000000000000004", "3.4028236e38", "9" * 400, "9" * 700, "9" * 5000, "1" + "0" * 37, "0." + "0" * 40, "1e38",
)  # fmt: skip
TEXTS = (
    '""', '"x"', '"é"', '"\\u00e9\\n"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00x"', '"\\/\\b\\f\\u001f\\u007f"',
    '"null"', '"2024-02-29"', '"2023-02-29"', '"2024-01-02T03:04:05"',
    '"2024-01-02T03:04:05.5+05:30"', '"2024-01-02 03:04:05Z"',
    '"AP8="', '"AP9="', '"1.5"', '"12"', '"\\u0000"', '"a\\"b"', '"\u2028"', '"[{[{"',
)  # fmt: skip
OTHERS = (
    "null", "true", "false", "[]", "{}", "[1, 1.10,\t[null]]", '{"k":1,"l":2.50,"k":[3]}', '{"a" : {"b":"\\u00e9"} }',
    "NaN", "-Infinity", "01", "+1", ".5", "1.", "[1,]", "'x'", "nul", "[" * 127 + "]" * 127, "[" * 129 + "]" * 129,
)  # fmt: skip
SCRAPS = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0", b"\x1f", b"\\", b"\\u", b'"', b",", b":", b"{", b"}",
    b"[", b"]", b" ", b"\n", b"\x0b", b"e", b"E", b"-", b"+", b".", b"0", b"9", b"null", b"NaN", b"\\ud800", b"/**/",
)  # fmt: skip
FITTING = {
    "boolean": ("true",), "smallint": ("5",), "integer": ("-70000",), "bigint": ("123456789012",), "real": ("0.5",),
    "double": ("0.1", "12"), "text": ('"some text"',), "bytea": ('"AP8="',), "date": ('"2024-02-29"',),
    "timestamp": ('"2024-01-02T03:04:05.25"',), "timestamptz": ('"2024-01-02T03:04:05Z"',),
    "jsonb": ('{"b" : [1, 1.10, "\\u00e9"], "a":true}',), "numeric(5,2)": ("1.25", "100"),
    "numeric(38,9)": ("12345678901234567890.123456789",), "numeric(38,38)": ("0.5",),
}  # fmt: skip


def mutants(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        raw = _record(rng).encode("utf-8", "surrogatepass")
        for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
            raw = _mutated(rng, raw)
        yield raw


def _record(rng: random.Random) -> str:
    """Mostly what the columns take, now and then something else, a field that is missing, twice or nobody's."""
    names = [name for name in COLUMN_TYPES if rng.random() < 0.8]
    fields = [(name, _value(rng, name)) for name in names]
    if rng.random() < 0.3:
        fields.append((rng.choice((*COLUMN_TYPES, "other", "")), _value(rng, None)))
    rng.shuffle(fields)
    gap = rng.choice(("", "", " ", "\n "))
    spelled = ((json.dumps(name) if rng.random() < 0.97 else _escaped(name), value) for name, value in fields)
    return gap + "{" + f",{gap}".join(f"{name}{gap}:{value}" for name, value in spelled) + "}" + gap


def _value(rng: random.Random, column: str | None) -> str:
    if column and rng.random() < 0.93:
        return rng.choice(FITTING[column])
    return rng.choice(rng.choice((NUMBERS, TEXTS, OTHERS)))


def _escaped(name: str) -> str:
    return '"' + "".join(f"\\u{ord(each):04x}" for each in name) + '"'


def _mutated(rng: random.Random, raw: bytes) -> bytes:
    low, high = sorted(rng.randrange(len(raw) + 1) for _ in range(2))
    near = min(high, low + rng.randrange(1, 4))
    return rng.choice((
        raw[:low] + raw[near:],
        raw[:low] + rng.choice(SCRAPS) + raw[low:],
        raw[:low] + rng.choice(SCRAPS) + raw[near:],
        raw[:low] + raw[low:near] * 2 + raw[near:],
        raw[:low],
        raw[:high] + raw[low:],
        raw[:low] + bytes([rng.randrange(256)]) + raw[low + 1 :],
    ))  # fmt: skip
