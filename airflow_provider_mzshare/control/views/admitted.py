"""What a query may be made of: syntax, functions and table functions, each by name. All else is refused.

A query is run by Spark, which has functions that run Java, read files and use the network. So everything that is not
listed here is refused.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_mzshare.core.ids import is_item_id

_SYNTAX = """
    Add Alias Any Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor Boolean CTE
    Column Cube DPipe DataType DataTypeParam Distinct Div EQ Escape Except Fetch Filter From GT GTE Group GroupingSets
    Having ILike Identifier In Intersect Interval IntervalSpan Is JSONPath JSONPathKey JSONPathRoot JSONPathSubscript
    Join LT LTE Lateral Like Limit Literal Mod Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Offset Order Ordered Paren
    Rollup Select Star Sub Subquery Table TableAlias Tuple Union Values Var Where Window WindowSpec With
"""

_FUNCTIONS = """
    Abs Acos And Array Ascii Asin Atan Atan2 Avg BitwiseAndAgg BitwiseOrAgg ByteLength Case Cast Cbrt Ceil
    Chr Coalesce Concat ConcatWs Corr Cos Cot Count CovarPop CovarSamp CumeDist CurrentDate CurrentTimestamp Date
    DateTrunc Degrees DenseRank Exists Exp Extract FirstValue Floor Greatest GroupConcat Grouping If JSONExtract
    JSONExtractScalar Lag LastValue Lead Least Left Length Levenshtein Ln LogicalAnd LogicalOr Lower MD5 Max Min
    NthValue Ntile Nullif Or Pad PercentRank Pi Pow Radians Rank RegexpLike Repeat Replace Reverse Right
    Round RowNumber Sign Sin SplitPart Sqrt StartsWith Stddev StddevPop StddevSamp StrPosition Substring Sum Tan
    TimestampTrunc Translate Trim Upper Variance VariancePop
"""
"""Only functions that mean the same in PostgreSQL and in their translation to Spark."""

PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE", "SECOND")
"""The fields of a time that EXTRACT may take; Spark counts the other fields differently."""

OTHERS = frozenset({"every", "octet_length"})
"""Functions without a class in sqlglot; in Spark they have the same name."""

TABLE_FUNCTIONS = ("unnest",)

_ADMITTED = frozenset(getattr(exp, name) for name in (*_SYNTAX.split(), *_FUNCTIONS.split(), "Unnest"))


def refusal(tree: exp.Expr) -> str | None:
    """Why the query is not admitted, or None."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in OTHERS:
                return f"function {node.name.lower()} is not allowed in a query"
        elif type(node) not in _ADMITTED:
            return _told(node)
        elif isinstance(node, exp.With) and node.args.get("recursive"):
            return "WITH RECURSIVE is not supported"
        elif why := _detail(node):
            return why
    return None


def _detail(node: exp.Expr) -> str | None:
    """What is wrong with a node of an admitted kind."""
    if isinstance(node, exp.Table):
        return _table(node)
    if isinstance(node, exp.Any) and not isinstance(node.this.unnest(), exp.Array):
        return "ANY takes an array: ANY(ARRAY[…]); for a subquery use IN or EXISTS"
    if isinstance(node, exp.Window) and isinstance(node.this, exp.Filter):
        return "FILTER with OVER is not supported: use sum(CASE WHEN … END) OVER (…)"
    if isinstance(node, exp.Extract) and node.name.upper() not in PARTS:
        return f"EXTRACT takes {', '.join(PARTS)}, not {node.name.upper()}"
    if isinstance(node, exp.Substring) and node.args["start"].is_string:
        return "substring takes positions, not a pattern: substring(text, first, count)"
    if isinstance(node, exp.Distinct) and node.args.get("on"):
        return "DISTINCT ON is not supported: use row_number() OVER (…)"
    if isinstance(node, exp.Func) and any(isinstance(part, exp.Order) for part in node.iter_expressions()):
        return "ORDER BY inside a function is not supported"
    if isinstance(node, exp.CTE) and is_item_id(node.alias):
        return f"WITH {node.alias}: names of this form are ids"
    return None


def _told(node: exp.Expr) -> str:
    if isinstance(node, exp.Func):
        return f"function {node.sql_name().lower()} is not allowed in a query"
    if isinstance(node, (exp.Parameter, exp.Placeholder, exp.SessionParameter)):
        return f"{node.sql('postgres')}: a query has no parameters"
    return f"{node.sql('postgres')[:60]} is not supported in a query"


def _table(table: exp.Table) -> str | None:
    """A plain name, at most with its schema."""
    if isinstance(table.this, exp.Func):
        return f"table function {_called(table.this)} is not supported; use {', '.join(TABLE_FUNCTIONS)}"
    if not isinstance(table.this, exp.Identifier):
        return f"{table.sql('postgres')[:60]} is not supported in a query"
    if table.args.get("catalog"):
        return f"{table.sql('postgres')}: a name is [schema.]name"
    odd = [
        key for key, value in table.args.items() if value and key not in ("this", "db", "alias", "joins", "laterals")
    ]
    return f"{table.sql('postgres')[:60]}: {odd[0]} is not supported in a query" if odd else None


def _called(function: exp.Func) -> str:
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return name.lower()
