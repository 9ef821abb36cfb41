"""What columns take, by the rows of docs/reference/decoding.md: type, the value in JSON, the value or the error."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

UTC = timezone.utc


def expects(type_name, got):
    return f'field "a": expected {type_name}, got {got}'


def out_of(type_name):
    return f'field "a": out of range for {type_name}'


LONG = "1234567890123456789012345678.0123456789"
ZONED = 'field "a": not a timestamptz (YYYY-MM-DDTHH:MM:SS[.ffffff] and Z or +HH:MM)'
FRACTION = "number with a fraction or an exponent"
FIELDS = {
    "F1": ("boolean", [("true", True), ("false", False), ("1", expects("boolean", "number"))]),
    "F2": (
        "smallint",
        [("-32768", -32768), ("32767", 32767), ("32768", out_of("smallint")), ("-32769", out_of("smallint"))],
    ),
    "F3": ("integer", [("2147483647", 2**31 - 1), ("2147483648", out_of("integer")), ("-0", 0)]),
    "F4": (
        "bigint",
        [
            (str(2**63 - 1), 2**63 - 1),
            (str(-(2**63)), -(2**63)),
            (str(2**63), out_of("bigint")),
            ("9" * 5000, out_of("bigint")),
        ],
    ),
    "F5": (
        "bigint",
        [
            ('"1"', expects("bigint", "string")),
            ("true", expects("bigint", "boolean")),
            ("[]", expects("bigint", "array")),
            ("{}", expects("bigint", "object")),
        ],
    ),
    "F6": ("integer", [(number, expects("integer", FRACTION)) for number in ("1.5", "1.0", "1e3")]),
    "F7": (
        "double",
        [
            ("0.1", 0.1),
            ("5", 5.0),
            ("9007199254740993", 9007199254740992.0),
            ("1e-400", 0.0),
            ('"1"', expects("double", "string")),
        ],
    ),
    "F8": (
        "double",
        [("1e400", out_of("double")), ("9" * 400, out_of("double")), ("true", expects("double", "boolean"))],
    ),
    "F9": ("real", [("0.5", 0.5), ("3.5e38", out_of("real")), ("-1e400", out_of("real"))]),
    "F10": (
        "numeric(5,2)",
        [
            ("123.45", Decimal("123.45")),
            ("1.500", Decimal("1.50")),
            ("12E1", Decimal("120.00")),
            ("0e99", Decimal("0.00")),
        ],
    ),
    "F11": (
        "numeric(5,2)",
        [
            ("1000", out_of("numeric(5,2)")),
            ("1e9999999999999999999999", out_of("numeric(5,2)")),
            ("9" * 5000, out_of("numeric(5,2)")),
            ("1.005", 'field "a": more than 2 digits after the decimal point'),
            ('"1.5"', expects("numeric(5,2)", "string")),
        ],
    ),
    "F12": ("numeric(38,10)", [(LONG, Decimal(LONG))]),
    "F13": (
        "text",
        [('"é\\n"', "é\n"), ('""', ""), ("1", expects("text", "number")), ("1.5", expects("text", "number"))],
    ),
    "F14": (
        "text",
        [
            ('"\\ud83d\\ude00"', "😀"),
            ('"\\ud800"', 'field "a": half of a surrogate pair, which is no character'),
        ],
    ),
    "F15": (
        "jsonb",
        [
            ('{"b" : [1, 1.10, 1e400, "\\u00e9"], "a":true, "b2":null}', '{"b":[1,1.10,1e400,"é"],"a":true,"b2":null}'),
            ('{"k":1,"l":2,"k":3}', '{"k":3,"l":2}'),
            ('"s"', '"s"'),
            ("9" * 5000, "9" * 5000),
            ("null", None),
            ('{"x":"\\ud800"}', 'field "a": half of a surrogate pair, which is no character'),
        ],
    ),
    "F16": (
        "bytea",
        [
            ('"AP8="', b"\0\xff"),
            ('""', b""),
            *[(f'"{bad}"', 'field "a": not base64') for bad in ("AP8", "AP9=", "A P8=", "é")],
        ],
    ),
    "F17": (
        "date",
        [('"2024-02-29"', date(2024, 2, 29)), ('"0001-01-01"', date(1, 1, 1)), ('"9999-12-31"', date(9999, 12, 31))],
    ),
    "F18": (
        "date",
        [
            *[(f'"{bad}"', 'field "a": no such date') for bad in ("2023-02-29", "2024-13-01", "0000-01-01")],
            *[
                (f'"{bad}"', 'field "a": not a date (YYYY-MM-DD)')
                for bad in (
                    "2024-1-1",
                    "20240101",
                    "2024-W01-1",
                    "2024-01-01T00:00:00",
                    "",
                    "2024-01-01\\n",
                    "２０２４-01-01",
                )
            ],
            ("19000", expects("date", "number")),
        ],
    ),
    "F19": (
        "timestamp",
        [
            ('"2024-01-02T03:04:05"', datetime(2024, 1, 2, 3, 4, 5)),
            ('"2024-01-02 03:04:05.6"', datetime(2024, 1, 2, 3, 4, 5, 600_000)),
            ('"2024-01-02T03:04:05.000006"', datetime(2024, 1, 2, 3, 4, 5, 6)),
        ],
    ),
    "F20": (
        "timestamp",
        [
            *[
                (f'"{bad}"', 'field "a": not a timestamp (YYYY-MM-DDTHH:MM:SS[.ffffff], no zone)')
                for bad in (
                    "2024-01-02",
                    "2024-01-02T03:04",
                    "2024-01-02T03:04:05.1234567",
                    "2024-01-02T03:04:05Z",
                    "2024-01-02t03:04:05",
                    "2024-01-02T03:04:05+00:00",
                )
            ],
            *[(f'"2024-01-02T{bad}"', 'field "a": no such timestamp') for bad in ("24:00:00", "23:60:00", "23:59:60")],
            ("1700000000", expects("timestamp", "number")),
        ],
    ),
    "F21": (
        "timestamptz",
        [
            ('"2024-01-02T03:04:05Z"', datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
            ('"2024-01-02T03:04:05.5+05:30"', datetime(2024, 1, 1, 21, 34, 5, 500_000, tzinfo=UTC)),
            ('"2024-01-01T23:00:00-01:30"', datetime(2024, 1, 2, 0, 30, tzinfo=UTC)),
        ],
    ),
    "F22": (
        "timestamptz",
        [
            *[(f'"2024-01-02T03:04:05{bad}"', ZONED) for bad in ("", "z", "+0530", "+05", " Z", " UTC")],
            *[
                (f'"{bad}"', 'field "a": no such timestamptz')
                for bad in (
                    "2024-01-02T03:04:05+24:00",
                    "2024-01-02T03:04:05+05:60",
                    "0001-01-01T00:00:00+01:00",
                    "9999-12-31T23:59:59-01:00",
                )
            ],
        ],
    ),
}
