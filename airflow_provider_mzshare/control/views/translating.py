"""A qualified query in Spark's words. Works on the tree alone: no text of a user's is ever pasted into SQL."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_mzshare.control.views.queries import understood

SPARK = "spark"
_TYPES = exp.DataType.Type
_INTEGERS = frozenset(exp.DataType.INTEGER_TYPES)
_NUMERIC = exp.DataType.build("decimal(38, 9)")


def to_spark(tree: exp.Query) -> str:
    """:param tree: qualified and with types; it reads relations by id, which are temporary views of the session."""
    tree = tree.copy()
    with understood():
        return _printed(tree)


def _printed(tree: exp.Query) -> str:
    # What is inside comes first: a node that is put in another's place brings its parts along as they are.
    for node in reversed(list(tree.walk())):
        translated = _translated(node)
        if translated is not node:
            translated.type = node.type
            node.replace(translated)
    return tree.sql(SPARK, identify=True, comments=False)


def _translated(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.DataType):
        return _type(node)
    if isinstance(node, exp.Div) and node.args.get("typed") and _is_integer(node.left) and _is_integer(node.right):
        # Spark divides integers as doubles, PostgreSQL throws the rest away.
        return exp.IntDiv(this=node.left.copy(), expression=node.right.copy())
    if isinstance(node, exp.Concat):
        # Spark would make a number of the empty text that stands for NULL.
        node.set("expressions", [part if part.is_string else exp.cast(part, "text") for part in node.expressions])
        return node
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)) and _kind(node.this) is _TYPES.TIMESTAMP:
        return exp.cast(node, "timestampntz")  # Spark's has a zone
    if isinstance(node, exp.Cast) and node.to.this in _INTEGERS and (rounded := _rounded(node.this)):
        return exp.cast(rounded, node.to)
    if isinstance(node, exp.Sum) and _kind(node.this) is _TYPES.BIGINT:
        return exp.Sum(this=_wide(node.this))
    if isinstance(node, (exp.Left, exp.Right)) and not _is_count(node.expression):
        return type(node)(this=node.this.copy(), expression=_kept(node.this, node.expression))
    if isinstance(node, exp.Substring) and not _is_count(node.args["start"]):
        return _substring(node)
    return node


def _wide(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Distinct):
        return exp.Distinct(expressions=[_wide(part) for part in node.expressions])
    return exp.cast(node.copy(), "decimal(19, 0)")


def _is_count(node: exp.Expr) -> bool:
    """A plain number from 1 on: Spark counts as PostgreSQL does."""
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) > 0


def _kept(text: exp.Expr, count: exp.Expr) -> exp.Expr:
    """How many characters left and right give: less than none are all but so many."""
    rest = exp.Length(this=text.copy()) + exp.Paren(this=count.copy())
    return exp.If(this=exp.Paren(this=count.copy()) < 0, true=_at_least(0, rest), false=count.copy())


def _substring(node: exp.Substring) -> exp.Substring:
    """Places before the first count and are empty; Spark would count them from the end."""
    start, length = node.args["start"], node.args.get("length")
    first = _at_least(1, start.copy())
    if length is None:
        return exp.Substring(this=node.this.copy(), start=first)
    end = exp.Paren(this=start.copy()) + exp.Paren(this=length.copy())
    return exp.Substring(this=node.this.copy(), start=first, length=_at_least(0, end - first.copy()))


def _at_least(least: int, node: exp.Expr) -> exp.Expr:
    # Unlike greatest, which skips NULL: a NULL stays one.
    return exp.If(this=exp.Paren(this=node) < least, true=exp.Literal.number(least), false=node.copy())


def _rounded(node: exp.Expr) -> exp.Expr | None:
    """PostgreSQL rounds what it makes whole, Spark cuts it off."""
    if isinstance(node, exp.Literal) and node.is_string:
        return None
    if _kind(node) is _TYPES.DECIMAL or isinstance(node, exp.Literal):
        return exp.Round(this=node.copy())
    return exp.Rint(this=node.copy()) if _kind(node) in exp.DataType.FLOAT_TYPES else None


def _is_integer(node: exp.Expr) -> bool:
    return _kind(node) in _INTEGERS


def _kind(node: exp.Expr) -> object:
    return node.type.this if node.type is not None else None


def _type(node: exp.DataType) -> exp.DataType:
    """What Spark has for a type: JSON is text here, numeric alone is numeric(38,9), a timestamp has no zone."""
    if node.this in (_TYPES.JSON, _TYPES.JSONB):
        return exp.DataType.build("text")
    if node.this is _TYPES.DECIMAL and not node.expressions:
        return _NUMERIC.copy()
    if node.this is _TYPES.TIMESTAMP:
        return exp.DataType.build("timestampntz")
    return node
