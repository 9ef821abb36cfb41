"""A qualified query in Spark's SQL. Works on the tree only: text of a user is never pasted into SQL."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_mzshare.control.views import text_functions
from airflow_provider_mzshare.control.views.queries import understood

SPARK = "spark"
_TYPES = exp.DataType.Type
_INTEGERS = frozenset(exp.DataType.INTEGER_TYPES)
_NUMERIC = exp.DataType.build("decimal(38, 9)")


def to_spark(tree: exp.Query) -> str:
    """:param tree: qualified and with types; it reads relations by id, which are temporary views of the session."""
    tree = tree.copy()
    text_functions.check_nesting(tree)
    with understood():
        return _printed(tree)


def _printed(tree: exp.Query) -> str:
    # Inner nodes first: a node that replaces another keeps the parts of the old node as they are.
    for node in reversed(list(tree.walk())):
        translated = _translated(node)
        if translated is not node:
            translated.type = node.type
            node.replace(translated)
    return tree.sql(SPARK, identify=True, comments=False)


def _translated(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.DataType):
        return _type(node)
    if isinstance(node, exp.Div):
        return _division(node)
    if isinstance(node, exp.Concat):
        # sqlglot puts an empty text for NULL, which Spark would turn into a number.
        node.set("expressions", [part if part.is_string else exp.cast(part, "text") for part in node.expressions])
        return node
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)) and _kind(node.this) is _TYPES.TIMESTAMP:
        return exp.cast(node, "timestampntz")  # Spark's has a zone
    if isinstance(node, exp.Cast) and node.to.this in _INTEGERS and (rounded := _rounded(node.this)):
        return exp.cast(rounded, node.to)
    if isinstance(node, exp.Round) and not node.args.get("decimals") and _is_float(node.this):
        return exp.Rint(this=node.this.copy())
    if isinstance(node, (exp.Sum, exp.Avg)):
        return _aggregate(node)
    return text_functions.translated(node)


def _division(node: exp.Div) -> exp.Expr:
    left, right = node.left, node.right
    if node.args.get("typed") and _is_integer(left) and _is_integer(right):
        # Spark divides integers as doubles; PostgreSQL drops the remainder.
        return exp.IntDiv(this=left.copy(), expression=right.copy())
    if _is_unbounded(left) or _is_unbounded(right):
        # For numeric, Spark might keep only six digits after the point.
        return exp.Div(this=_as_double(left), expression=_as_double(right))
    return node


def _aggregate(node: exp.Sum | exp.Avg) -> exp.Expr:
    if isinstance(node, exp.Sum) and _kind(node.this) is _TYPES.BIGINT:
        return exp.Sum(this=_each(node.this, "decimal(19, 0)"))
    if isinstance(node, exp.Avg) and _is_unbounded(node.this):
        return exp.Avg(this=_each(node.this, "double"))
    return node


def _each(node: exp.Expr, to: str) -> exp.Expr:
    """Cast the argument of an aggregate; DISTINCT stays around it."""
    if isinstance(node, exp.Distinct):
        return exp.Distinct(expressions=[_each(part, to) for part in node.expressions])
    return exp.cast(node.copy(), to)


def _as_double(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), "double")


def _is_unbounded(node: exp.Expr) -> bool:
    """Numeric without a precision, such as a sum of bigint. How many digits Spark keeps depends on the expression."""
    return _kind(node) is _TYPES.DECIMAL and not (node.type and node.type.expressions)


def _is_float(node: exp.Expr) -> bool:
    return _kind(node) in exp.DataType.FLOAT_TYPES


def _rounded(node: exp.Expr) -> exp.Expr | None:
    """A cast to an integer rounds in PostgreSQL, and cuts the fraction off in Spark."""
    if isinstance(node, exp.Literal) and node.is_string:
        return None
    if _kind(node) is _TYPES.DECIMAL or isinstance(node, exp.Literal):
        return exp.Round(this=node.copy())
    return exp.Rint(this=node.copy()) if _is_float(node) else None


def _is_integer(node: exp.Expr) -> bool:
    return _kind(node) in _INTEGERS


def _kind(node: exp.Expr) -> object:
    return node.type.this if node.type is not None else None


def _type(node: exp.DataType) -> exp.DataType:
    """Spark's type for one of ours: JSON is text, numeric without digits is numeric(38,9), a timestamp has no zone."""
    if node.this in (_TYPES.JSON, _TYPES.JSONB):
        return exp.DataType.build("text")
    if node.this is _TYPES.DECIMAL and not node.expressions:
        return _NUMERIC.copy()
    if node.this is _TYPES.TIMESTAMP:
        return exp.DataType.build("timestampntz")
    return node
