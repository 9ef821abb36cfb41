"""Types of expressions where PostgreSQL's are others than sqlglot's: they decide what a division is."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.optimizer.annotate_types import TypeAnnotator

_SUM = Postgres.EXPRESSION_METADATA[exp.Sum]["annotator"]


def _sum(annotator: TypeAnnotator, node: Any) -> Any:
    """A sum of bigint is numeric: it does not overflow, and its half may be no whole number."""
    if node.this.is_type(exp.DType.BIGINT):
        return annotator._set_type(node, exp.DType.DECIMAL)
    return _SUM(annotator, node)


METADATA: dict[Any, Any] = {
    **Postgres.EXPRESSION_METADATA,
    exp.Sum: {"annotator": _sum},
    exp.Extract: {"returns": exp.DType.DECIMAL},
}
