"""Parses SELECT with its joins and windows."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Literal

from penstock.jobs.sql.cursor import Cursor
from penstock.jobs.sql.statements import Explode, Group, How, InWindow, Item, Join, Ref, Regular, Select, Window, Within
from penstock.jobs.sql.tokens import Fragment, Token

_JOINS: dict[tuple[str, ...], How] = {
    ("JOIN",): "inner",
    ("INNER", "JOIN"): "inner",
    ("LEFT", "JOIN"): "left",
    ("LEFT", "OUTER", "JOIN"): "left",
    ("FULL", "JOIN"): "full",
    ("FULL", "OUTER", "JOIN"): "full",
}
# The kinds of joins whose keyword is placed between JOIN and the joined view.
_NAMED_WAYS: dict[tuple[str, ...], Literal["temporal", "broadcast", "lookup"]] = {
    ("VERSIONS", "OF"): "temporal",
    ("BROADCAST",): "broadcast",
    ("TABLE",): "lookup",
}
# Kinds of windows.
WINDOWS = ("TUMBLE", "HOP", "SESSION", "CUMULATE", "ROWS")
# The columns of a view by which its window is known.
_BOUNDS = ("window_start", "window_end")
_CLAUSES = (
    ("WHERE",),
    ("GROUP", "BY"),
    ("HAVING",),
    ("EMIT",),
    ("UNION", "ALL"),
    ("LATERAL", "VIEW"),
    ("ORDER", "BY"),
    ("LIMIT",),
    ("UNION",),
)
_IN_WINDOW = tuple(("IN", name, "(") for name in WINDOWS)
_JOIN_WAYS = "WITHIN '-1m' AND '1m', IN TUMBLE('5m'), EMIT CHANGES or EMIT CURRENT; or JOIN VERSIONS OF, JOIN BROADCAST, JOIN TABLE"
# They would drop the rows of side outputs.
_GENERATORS = frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack"})
# Spark SQL that is not supported for streams, or not in this form; with its replacement.
_NOT_HERE = {
    ("DISTINCT",): "DEDUPLICATE view BY ... WITHIN ...",
    ("ORDER", "BY"): "TOP n OF view ORDER BY ...",
    ("LIMIT",): "TOP n OF view ORDER BY ...",
    ("UNION",): "UNION ALL",
}


def select(cursor: Cursor) -> Select:
    """Parses a SELECT, up to a UNION ALL."""
    cursor.expect("SELECT")
    _refuse(cursor, ("DISTINCT",))
    items = tuple(_item(one) for one in cursor.split(("FROM",)).by_comma())
    cursor.expect("FROM")
    left = _ref(cursor)
    join, explode = _join(cursor, left), _explode(cursor)
    where = _condition(cursor) if cursor.accept("WHERE") else None
    group = _group(cursor)
    having = _condition(cursor) if group and cursor.accept("HAVING") else None
    if group is not None:
        group = Group(group.keys, group.window, _emit(cursor) or group.emit, group.place)
    for words in (("ORDER", "BY"), ("LIMIT",)):
        _refuse(cursor, words)
    if cursor.sees("UNION") and not cursor.sees("UNION", "ALL"):
        _refuse(cursor, ("UNION",))
    return Select(items, left, join, explode, where, group, having)


def window(cursor: Cursor) -> Window:
    """Parses a window."""
    kind = next((name for name in WINDOWS if cursor.sees(name)), None)
    if kind is None:
        raise cursor.refused(f"a window: {', '.join(WINDOWS)}")
    place = cursor.name()
    inside = cursor.brackets()
    size = str(inside.whole()) if kind == "ROWS" else inside.string()
    step, offset = None, "0"
    if kind in ("HOP", "ROWS", "CUMULATE"):
        word = "STEP" if kind == "CUMULATE" else "EVERY"
        if inside.accept(word):
            step = str(inside.whole()) if kind == "ROWS" else inside.string()
        elif kind != "ROWS":
            raise inside.refused(f"{word} '1m'")
    if kind in ("TUMBLE", "HOP", "CUMULATE") and inside.accept("OFFSET"):
        offset = inside.string()
    inside.end()
    kinds: dict[str, Literal["tumble", "hop", "session", "cumulate", "rows"]] = {
        "TUMBLE": "tumble", "HOP": "hop", "SESSION": "session", "CUMULATE": "cumulate", "ROWS": "rows",
    }  # fmt: skip
    return Window(kinds[kind], size, step, offset, replace(place, text=f"{kind}('{size}')"))


def _refuse(cursor: Cursor, words: tuple[str, ...]) -> None:
    if cursor.sees(*words):
        raise cursor.refused(f"no {' '.join(words)}, which is unbounded on a stream", f"use {_NOT_HERE[words]}")


def _item(cursor: Cursor) -> Item:
    remaining = cursor.left()
    _only_a_row(cursor, remaining)
    if len(remaining) == 1 and remaining[0].text == "*":
        return Item(cursor.rest(), "*")
    if len(remaining) > 2 and remaining[-2].text.upper() == "AS" and remaining[-1].kind in ("word", "quoted"):
        name = remaining[-1].text.strip("`")
        return Item(_without_name(cursor), name)
    expression = cursor.rest()
    if re.fullmatch(r"(?:\w+\s*\.\s*)*`?[\w-]+`?", expression.text):
        return Item(expression, expression.text.split(".")[-1].strip().strip("`"))
    if re.fullmatch(r"\w+\s*\.\s*\*", expression.text):
        return Item(expression, "*")
    raise cursor.script.refused(expression, "a name for the column", "add AS name")


def _condition(cursor: Cursor) -> Fragment:
    inside = cursor.split(*_CLAUSES)
    _only_a_row(cursor, inside.left())
    return inside.rest()


def _without_name(cursor: Cursor) -> Fragment:
    *tokens, _, _ = cursor.left()
    return Cursor(cursor.script, tokens).rest()


def _only_a_row(cursor: Cursor, expression: list[Token]) -> None:
    """Rejects expressions that refer to other rows."""
    for token, after in itertools.pairwise(expression):
        if token.text.upper() == "OVER" and after.text == "(":
            raise cursor.script.refused(token, "no OVER, which is unbounded on a stream", "use TOP, DEDUPLICATE or MATCH")
        if token.text.lower() in _GENERATORS and after.text == "(":
            raise cursor.script.refused(token, "one value per row", "use FROM ... LATERAL VIEW explode(...) AS name")
        if token.text == "(" and after.text.upper() == "SELECT":
            raise cursor.script.refused(after, "no subquery in an expression", "create a view of it and join it")


def _ref(cursor: Cursor) -> Ref:
    if cursor.sees("("):
        raise cursor.refused("the name of a view", "create a view of it first")
    view = cursor.name()
    unique: tuple[str, ...] = ()
    if cursor.accept("UNIQUE"):
        inside = cursor.brackets()
        unique = inside.names()
        inside.end()
    alias = cursor.name().text if cursor.accept("AS") else view.text
    if cursor.sees(","):
        raise cursor.refused("one view, or two with JOIN", "use JOIN")
    return Ref(view, alias, unique)


def _join(cursor: Cursor, left: Ref) -> Join | None:
    how = next((how for words, how in _JOINS.items() if cursor.accept(*words)), None)
    if how is None:
        return None
    named = next((name for words, name in _NAMED_WAYS.items() if cursor.accept(*words)), None)
    right = _ref(cursor)
    cursor.expect("ON")
    on = cursor.split(*_CLAUSES, *_JOINS, *_IN_WINDOW, ("WITHIN",), ("KEPT",))
    keys, condition = _keys(on.left(), left.alias, right.alias), on.rest()
    if not keys and named != "broadcast":
        need = f"fields of both sides: {left.alias}.field = {right.alias}.field, several with AND"
        raise cursor.script.refused(condition, need, "compute the key in a view first")
    way = named or _way(cursor)
    for words in _JOINS:
        if cursor.sees(*words):
            raise cursor.refused("one join per view", "create a view of this join, and join that")
    if how == "full" and named:
        raise cursor.script.refused(right.view, "INNER or LEFT", "rows that only the right side has are not emitted")
    return Join(way, how, right, keys, condition)


def _way(cursor: Cursor) -> Within | InWindow | Regular:
    """How long the rows of a plain JOIN are kept."""
    if cursor.accept("WITHIN"):
        lower = cursor.string()
        cursor.expect("AND")
        return Within(lower, cursor.string(), _between(cursor))
    if cursor.accept("IN"):
        return InWindow(window(cursor))
    kept = cursor.string() if cursor.accept("KEPT") else None
    if cursor.accept("EMIT", "CHANGES"):
        return Regular("changes", kept)
    if cursor.accept("EMIT", "CURRENT"):
        return Regular("current", kept)
    raise cursor.refused(f"how long rows wait for a match: {_JOIN_WAYS}", "add it after the ON")


def _between(cursor: Cursor) -> tuple[Fragment, Fragment] | None:
    if not cursor.accept("BETWEEN"):
        return None
    first = cursor.until(("AND",), *_CLAUSES)
    cursor.expect("AND")
    return first, cursor.until(*_CLAUSES, *_JOINS)


def _keys(condition: list[Token], left: str, right: str) -> tuple[tuple[str, str], ...]:
    """Pairs of fields of ``left.a = right.b AND ...``; empty for any other condition."""
    texts = [token.text.strip("`") for token in condition]
    pairs: list[tuple[str, str]] = []
    while len(texts) >= 7 and texts[1] == "." and texts[3] in ("=", "==") and texts[5] == ".":
        one, other = (texts[0], texts[2]), (texts[4], texts[6])
        if one[0] != left:
            one, other = other, one
        if (one[0], other[0]) != (left, right):
            return ()
        pairs.append((one[1], other[1]))
        texts = texts[7:]
        if not texts:
            return tuple(pairs)
        if texts.pop(0).upper() != "AND":
            return ()
    return ()


def _explode(cursor: Cursor) -> Explode | None:
    if not cursor.accept("LATERAL", "VIEW"):
        return None
    if cursor.accept("EXPLODE"):
        function, array = None, cursor.brackets().rest()
    else:
        function, array = cursor.call()
    cursor.expect("AS")
    return Explode(array, cursor.name().text, function)


def _group(cursor: Cursor) -> Group | None:
    if not cursor.sees("GROUP", "BY"):
        return None
    place = cursor.here("GROUP BY")
    cursor.expect("GROUP", "BY")
    keys: list[str] = []
    within: Window | None = None
    while True:
        if any(cursor.sees(name, "(") for name in WINDOWS):
            within = window(cursor)
        else:
            keys.append(cursor.name().text)
        if not cursor.accept(","):
            break
    if cursor.sees("(") or cursor.sees("."):
        raise cursor.refused("column names and a window", "compute the key in a view first")
    if within is None and set(_BOUNDS) <= set(keys):
        within = Window("same", "", None, "0", place)
        keys = [key for key in keys if key not in _BOUNDS]
    return Group(tuple(keys), within, "final", place)


def _emit(cursor: Cursor) -> Literal["final", "updates", "changes"] | None:
    if not cursor.accept("EMIT"):
        return None
    if cursor.accept("UPDATES"):
        return "updates"
    if cursor.accept("CHANGES"):
        return "changes"
    cursor.expect("FINAL")
    return "final"
