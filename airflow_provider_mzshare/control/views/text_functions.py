"""Text functions that differ in Spark: positions before the first character, and characters above code point 255."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from airflow_provider_mzshare.control.views.view_errors import BadQuery

_CUTTING = (exp.Left, exp.Right, exp.Substring)
_DEEPEST = 4
"""How deeply these functions may be nested: each of them repeats its text several times in Spark's SQL."""


def translated(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Left):
        return _cut(node, _all_but_last)
    if isinstance(node, exp.Right):
        return _cut(node, _from)
    if isinstance(node, exp.Substring):
        return _substring(node)
    return _character(node) if isinstance(node, exp.Chr) else node


def check_nesting(tree: exp.Query) -> None:
    for node in tree.find_all(*_CUTTING):
        depth, place = 0, node.parent
        while place is not None:
            depth += isinstance(place, _CUTTING) and _number(_count(place)) is None
            place = place.parent
        if depth > _DEEPEST:
            raise BadQuery("left, right and substring are nested too deeply", hint="move a part into a view")


def _count(node: exp.Expr) -> exp.Expr:
    count: exp.Expr = node.args["start"] if isinstance(node, exp.Substring) else node.expression
    return count


def _number(node: exp.Expr | None) -> int | None:
    """The value of a number literal, with its sign; None for other expressions."""
    sign, inner = 1, node
    while isinstance(inner, (exp.Neg, exp.Paren)):
        sign, inner = -sign if isinstance(inner, exp.Neg) else sign, inner.this
    plain = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()
    return sign * int(inner.name) if plain and inner is not None else None


def _character(node: exp.Chr) -> exp.Expr:
    """The character of a code point. Spark's own ``chr`` starts again after 255."""
    digits = exp.Anonymous(this="hex", expressions=[one.copy() for one in node.expressions])
    padded = exp.Anonymous(this="lpad", expressions=[digits, exp.Literal.number(8), exp.Literal.string("0")])
    code = exp.Anonymous(this="unhex", expressions=[padded])
    return exp.Anonymous(this="decode", expressions=[code, exp.Literal.string("UTF-32")])


def _cut(node: exp.Left | exp.Right, rest: Callable[[exp.Expr, exp.Expr], exp.Expr]) -> exp.Expr:
    """A negative count means all but so many characters, of the other end. ``rest``: the text from a position on."""
    text, count = node.this, node.expression
    number = _number(count)
    if number is not None:
        return node if number >= 0 else rest(text, exp.Literal.number(1 - number))
    negative = exp.Paren(this=count.copy()) < 0
    plain = type(node)(this=text.copy(), expression=count.copy())
    return exp.If(this=negative, true=rest(text, 1 - exp.Paren(this=count.copy())), false=plain)


def _from(text: exp.Expr, start: exp.Expr) -> exp.Expr:
    return exp.Substring(this=text.copy(), start=start)


def _all_but_last(text: exp.Expr, start: exp.Expr) -> exp.Expr:
    """The text is reversed twice, because otherwise its length would be needed, and so the text once more."""
    return exp.Reverse(this=_from(exp.Reverse(this=text.copy()), start))


def _substring(node: exp.Substring) -> exp.Expr:
    """Positions before the first character are empty, and count for the length; Spark counts them from the end."""
    text, start, length = node.this, node.args["start"], node.args.get("length")
    number = _number(start)
    if number is not None and number > 0:
        return node
    first = exp.Literal.number(1) if number is not None else _at_least(1, start)
    if length is None:
        return _from(text, first)
    here = _at_least(0, exp.Paren(this=length.copy()) + exp.Paren(this=start.copy()) - 1)
    if number is None:
        here = exp.If(this=exp.Paren(this=start.copy()) < 1, true=here, false=length.copy())
    return exp.Substring(this=text.copy(), start=first, length=here)


def _at_least(least: int, node: exp.Expr) -> exp.Expr:
    # Unlike greatest, which skips NULL: a NULL stays one.
    return exp.If(this=exp.Paren(this=node.copy()) < least, true=exp.Literal.number(least), false=node.copy())
