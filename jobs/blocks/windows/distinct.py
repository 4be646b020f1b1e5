"""Aggregates of distinct values, which Spark's streaming aggregation has not, by the set of the values."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.sql.tokens import Script, Token, tokens

# Aggregates whose result is the same for distinct values; and those of which distinct values make the set.
_SAME = frozenset({"min", "max", "collect_set", "bool_and", "bool_or", "every", "some", "any", "bit_and", "bit_or"})
_SETS = frozenset({"collect_list", "array_agg"})
_KNOWN = ("count", "sum", "avg", "min", "max", "collect_list")


def without_distinct(frame: DataFrame, text: str) -> str:
    """An expression of aggregates with ``DISTINCT`` in terms of ``collect_set``, with the same values and types.

    The state has all distinct values of each group.

    Args:
        frame: the rows that are aggregated.
        text: in Spark SQL.

    Raises:
        ValueError: an aggregate that is not one of count, sum, avg, min, max and collect_list.
    """
    try:
        some = tokens(Script(Path(), text)) if "distinct" in text.lower() else []
    except SqlRefused:
        # Spark says what is wrong.
        return text
    # From the end: what is replaced is behind the places that follow.
    for index in range(len(some) - 3, -1, -1):
        if some[index].kind == "word" and some[index + 1].text == "(" and some[index + 2].text.upper() == "DISTINCT":
            end = _closing(some, index + 1)
            condition = _filter(some, end)
            arguments = _arguments(text, some[index + 3 : end], some[index + 2].end, some[end].start)
            filtered = text[some[end].end : some[condition].end] if condition else ""
            after = some[condition or end].end
            text = text[: some[index].start] + _replaced(frame, some[index].text.lower(), arguments, filtered) + text[after:]
    return text


def _closing(some: list[Token], opening: int) -> int:
    depth = some[opening].depth
    return next(number for number in range(opening + 1, len(some)) if some[number].depth == depth and some[number].text == ")")


def _filter(some: list[Token], end: int) -> int | None:
    """The end of ``FILTER (WHERE ...)`` after a call; None if there is none."""
    after = [token.text.upper() for token in some[end + 1 : end + 3]]
    return _closing(some, end + 2) if after == ["FILTER", "("] else None


def _arguments(text: str, inside: list[Token], start: int, end: int) -> list[str]:
    depth = min((token.depth for token in inside), default=0)
    commas = [token.start for token in inside if token.text == "," and token.depth == depth]
    return [text[first:last].strip() for first, last in zip([start, *(comma + 1 for comma in commas)], [*commas, end], strict=True)]


def _replaced(frame: DataFrame, function: str, arguments: list[str], filtered: str) -> str:
    one = arguments[0]
    if function in _SAME:
        return f"{function}({', '.join(arguments)}){filtered}"
    if len(arguments) > 1 and function == "count":
        # As in SQL, rows in which one is null do not count.
        present = " AND ".join(f"({argument}) IS NOT NULL" for argument in arguments)
        one = f"CASE WHEN {present} THEN struct({', '.join(arguments)}) END"
    elif len(arguments) > 1:
        raise ValueError(f"{function}(DISTINCT ...) takes one argument")
    values = f"collect_set({one}){filtered}"
    if function == "count":
        return f"CAST(size({values}) AS BIGINT)"
    if function in _SETS:
        return f"array_sort({values})"
    if function not in ("sum", "avg", "mean"):
        raise ValueError(f"{function}(DISTINCT ...) is not supported on a stream; {', '.join(_KNOWN)} are")
    total = _sum(values, _type(frame, f"sum({one})"))
    return total if function == "sum" else f"CAST({total} / nullif(size({values}), 0) AS {_type(frame, f'avg({one})')})"


def _sum(values: str, kind: str) -> str:
    # Sorted: the digits of a sum of doubles depend on the order.
    added = f"(total, one) -> CAST(coalesce(total + CAST(one AS {kind}), CAST(one AS {kind})) AS {kind})"
    return f"aggregate(array_sort({values}), CAST(NULL AS {kind}), {added})"


def _type(frame: DataFrame, aggregate: str) -> str:
    return frame.agg(F.expr(aggregate).alias("value")).schema["value"].dataType.simpleString()
