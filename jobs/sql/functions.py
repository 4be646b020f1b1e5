"""Parses functions in Python, and the queries that call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from penstock.jobs.sql.cursor import Cursor
from penstock.jobs.sql.statements import Call, CreateFunction, FunctionKind, Keys, Process
from penstock.jobs.sql.tokens import Fragment

# Words before FUNCTION -> kind.
_KINDS: dict[tuple[str, ...], FunctionKind] = {
    (): "scalar",
    ("TABLE",): "table",
    ("AGGREGATE",): "aggregate",
    ("TABLE", "AGGREGATE"): "table aggregate",
    ("CALL",): "call",
    ("KEYED",): "keyed",
}
# Those that return rows, and those that return either values or rows.
_OF_ROWS = ("call", "keyed")
_OF_VALUES_OR_ROWS = ("table", "table aggregate")
_TIMES: dict[str, Literal["event", "processing"]] = {"EVENT": "event", "PROCESSING": "processing"}
_NOT_DETERMINISTIC = ("NOT", "DETERMINISTIC")
_AFTER_TYPE = (("AS",), _NOT_DETERMINISTIC, ("STATE",), ("CAPACITY",), ("TIMEOUT",), ("ATTEMPTS",), ("BACKOFF",), ("UNORDERED",))


def kind_ahead(cursor: Cursor) -> FunctionKind | None:
    """Consumes ``CREATE kind FUNCTION`` if it is next."""
    return next((kind for words, kind in _KINDS.items() if cursor.accept("CREATE", *words, "FUNCTION")), None)


def create_function(cursor: Cursor, kind: FunctionKind) -> CreateFunction:
    """Parses what follows ``CREATE kind FUNCTION``."""
    name = cursor.name()
    returns, rows = _returns(cursor, kind)
    deterministic = not (kind not in _OF_ROWS and cursor.accept(*_NOT_DETERMINISTIC))
    state = cursor.brackets().rest() if kind == "keyed" and cursor.accept("STATE") else None
    options = tuple(_options(cursor)) if kind == "call" else ()
    cursor.expect("AS")
    python = cursor.quoted("such as 'functions.risk': a module and a name in it")
    cursor.accept("LANGUAGE", "PYTHON")
    return CreateFunction(name, kind, python, returns, rows, deterministic, state, options)


def _returns(cursor: Cursor, kind: FunctionKind) -> tuple[Fragment | None, bool]:
    if cursor.accept("RETURNS", "TABLE"):
        if kind not in (*_OF_ROWS, *_OF_VALUES_OR_ROWS):
            raise cursor.refused("the type of a value", "use CREATE TABLE FUNCTION for one that returns rows")
        return cursor.brackets().rest(), True
    if kind in _OF_ROWS:
        raise cursor.refused("RETURNS TABLE (field type, ...)", "add the fields that it returns")
    return (cursor.until(*_AFTER_TYPE), False) if cursor.accept("RETURNS") else (None, False)


def _options(cursor: Cursor) -> Iterator[tuple[str, str | int | bool]]:
    while True:
        if cursor.accept("UNORDERED"):
            yield "ordered", False
        elif word := next((word for word in ("capacity", "attempts") if cursor.accept(word.upper())), None):
            yield word, cursor.whole()
        elif word := next((word for word in ("timeout", "backoff", "connection") if cursor.accept(word.upper())), None):
            yield word, cursor.string()
        else:
            return


def call(cursor: Cursor) -> Call:
    """Parses what follows ``CALL``."""
    function = cursor.name()
    cursor.expect("OF")
    view = cursor.name()
    cursor.expect("KEY")
    return Call(function, view, cursor.rest())


def process(cursor: Cursor) -> Process:
    """Parses what follows ``PROCESS``."""
    inputs = [_keys(cursor)]
    if cursor.accept("AND"):
        inputs.append(_keys(cursor))
    cursor.expect("WITH")
    function = cursor.name()
    time = next((time for word, time in _TIMES.items() if cursor.accept("ON", word, "TIME")), None)
    ordered = cursor.accept("IN", "ORDER", "OF", "TIME")
    ttl = cursor.string() if cursor.accept("TTL") else None
    return Process(tuple(inputs), function, time, ordered, ttl, cursor.accept("EMIT", "UPDATES"))


def _keys(cursor: Cursor) -> Keys:
    view = cursor.name()
    cursor.expect("BY")
    return Keys(view, cursor.names())
