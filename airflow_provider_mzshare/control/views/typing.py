"""Types for which PostgreSQL differs from sqlglot: they decide how division and rounding work."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.optimizer.annotate_types import TypeAnnotator

_TYPES = exp.DType
_KNOWN = Postgres.EXPRESSION_METADATA
_MAX_INTEGER, _MAX_BIGINT = 2**31, 2**63


def _sum(annotator: TypeAnnotator, node: Any) -> Any:
    """A sum of bigint is numeric: it does not overflow, and dividing it can give a fraction."""
    if node.this.is_type(_TYPES.BIGINT):
        return annotator._set_type(node, _TYPES.DECIMAL)
    return _KNOWN[exp.Sum]["annotator"](annotator, node)


def _average(annotator: TypeAnnotator, node: Any) -> Any:
    floating = node.this.type is not None and node.this.type.this in exp.DataType.FLOAT_TYPES
    return annotator._set_type(node, _TYPES.DOUBLE if floating else _TYPES.DECIMAL)


def _like_its_argument(annotator: TypeAnnotator, node: Any) -> Any:
    """For numeric it is numeric; for integers and floats it is double precision."""
    return annotator._set_type(node, _TYPES.DECIMAL if node.this.is_type(_TYPES.DECIMAL) else _TYPES.DOUBLE)


def _literal(annotator: TypeAnnotator, node: Any) -> Any:
    if node.is_string:
        return annotator._set_type(node, _TYPES.VARCHAR)
    if not node.name.isdigit() or int(node.name) >= _MAX_BIGINT:
        return annotator._set_type(node, _TYPES.DECIMAL)
    return annotator._set_type(node, _TYPES.INT if int(node.name) < _MAX_INTEGER else _TYPES.BIGINT)


def _other(annotator: TypeAnnotator, node: Any) -> Any:
    counts = node.name.lower() == "octet_length"
    return annotator._set_type(node, _TYPES.INT if counts else _TYPES.UNKNOWN)


_MATHEMATICAL = (exp.Ceil, exp.Exp, exp.Floor, exp.Ln, exp.Pow, exp.Round, exp.Sign, exp.Sqrt)
METADATA: dict[Any, Any] = {
    **_KNOWN,
    **{function: {"annotator": _like_its_argument} for function in _MATHEMATICAL},
    exp.Anonymous: {"annotator": _other},
    exp.Avg: {"annotator": _average},
    exp.Extract: {"returns": _TYPES.DECIMAL},
    exp.Grouping: {"returns": _TYPES.INT},
    exp.Literal: {"annotator": _literal},
    exp.Sum: {"annotator": _sum},
}
