"""Parses the text of an SQL app into statements, without Spark: expressions stay text, which Spark parses when the job is built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from penstock.jobs.sql.cursor import Cursor
from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.sql.functions import call, create_function, kind_ahead, process
from penstock.jobs.sql.names import misdirected, misused
from penstock.jobs.sql.selecting import WINDOWS, select, window
from penstock.jobs.sql.statements import (
    CreateSource,
    CreateView,
    Deduplicate,
    Divert,
    Insert,
    Match,
    MatchStep,
    OrderBy,
    Query,
    Result,
    SideOutput,
    Statement,
    Top,
    Union,
)
from penstock.jobs.sql.tokens import MAX_BYTES, Script, Token, tokens
from penstock.sizing.errors import PenstockError, Place, raise_all

_AFTER_ORDER = (*(("IN", name) for name in WINDOWS), ("WITH", "TIES"), ("WITH", "DENSE"), ("EMIT",))
_STATEMENTS = "CREATE SOURCE, CREATE VIEW, CREATE FUNCTION, INSERT INTO or SIDE OUTPUT"


def read(path: Path) -> tuple[Script, list[Statement]]:
    """Parses the statements of a file.

    Raises:
        PenstockError: SPEC-045 for each invalid statement, and for names that are unknown, duplicate or used twice; several are raised
            as `Faults`.
    """
    try:
        with path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
        text = body.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        need = (error.strerror or "a readable file") if isinstance(error, OSError) else "UTF-8 text"
        raise SqlRefused(at=Place(file=str(path)), need=need, fix="check the file") from None
    if len(body) > MAX_BYTES:
        raise SqlRefused(at=Place(file=str(path)), need=f"at most {MAX_BYTES} bytes", fix="split the job")
    return parse(Script(path, text))


def parse(script: Script) -> tuple[Script, list[Statement]]:
    """Like `read`, for the text of a file."""
    statements, faults = _parsed(script, _split(tokens(script)), _statement)
    raise_all(faults)
    raise_all(misused(script, statements))
    raise_all(misdirected(script, statements))
    return script, statements


def embedded(script: Script, passed: Collection[str] | None = None) -> list[Statement]:
    """Parses the text of a ``job.sql`` call: statements that create something, and last a query.

    Args:
        script: the text.
        passed: names of the streams that it may read besides those that it creates; None: they are not known.

    Raises:
        PenstockError: those of `read`.
    """
    *creating, last = list(_split(tokens(script))) or [[]]
    statements, faults = _parsed(script, creating, _created)
    results, more = _parsed(script, [last], _result)
    raise_all([*faults, *more])
    statements += results
    raise_all(misused(script, statements, passed))
    return statements


def _parsed(
    script: Script, parts: Iterable[list[Token]], read_: Callable[[Cursor], Statement]
) -> tuple[list[Statement], list[PenstockError]]:
    statements: list[Statement] = []
    faults: list[PenstockError] = []
    for some in parts:
        try:
            statements.append(read_(Cursor(script, some)))
        except SqlRefused as fault:
            faults.append(fault)
    return statements, faults


def _created(cursor: Cursor) -> Statement:
    if not cursor.sees("CREATE"):
        raise cursor.refused("CREATE VIEW or another CREATE before the query", "keep one query, at the end")
    return _statement(cursor)


def _result(cursor: Cursor) -> Statement:
    if not any(cursor.sees(word) for word in ("SELECT", *_NAMED_QUERIES)):
        fix = "end the text with the query whose rows job.sql is to return; job.write and job.side_output take them to sinks"
        raise cursor.refused(f"a query: {', '.join(('SELECT', *_NAMED_QUERIES))}", fix)
    result = Result(_query(cursor))
    cursor.end()
    return result


def _split(all_tokens: list[Token]) -> Iterator[list[Token]]:
    some: list[Token] = []
    for token in all_tokens:
        if token.text != ";" or token.depth:
            some.append(token)
        elif some:
            yield some
            some = []
    if some:
        yield some


def _statement(cursor: Cursor) -> Statement:
    statement: Statement
    if (kind := kind_ahead(cursor)) is not None:
        statement = create_function(cursor, kind)
    elif cursor.accept("CREATE", "SOURCE"):
        statement = _source(cursor)
    elif cursor.accept("CREATE", "VIEW"):
        name = cursor.name()
        cursor.expect("AS")
        statement = CreateView(name, _query(cursor))
    elif cursor.accept("INSERT", "INTO"):
        statement = Insert(cursor.name(), _query(cursor))
    elif cursor.accept("SIDE", "OUTPUT"):
        statement = SideOutput(cursor.name(), cursor.name().text if cursor.accept("FOR") else "quarantined")
    else:
        raise cursor.refused(_STATEMENTS, "start the statement with one of these")
    cursor.end()
    return statement


def _source(cursor: Cursor) -> CreateSource:
    name, schema = cursor.name(), cursor.brackets()
    record = cursor.name().text if cursor.accept("RECORD", "AS") else None
    return CreateSource(name, schema.rest(), record)


def _query(cursor: Cursor) -> Query:
    for word, read_ in _NAMED_QUERIES.items():
        if cursor.accept(word):
            return read_(cursor)
    parts = [select(cursor)]
    while cursor.accept("UNION", "ALL"):
        parts.append(select(cursor))
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _deduplicate(cursor: Cursor) -> Deduplicate:
    view = cursor.name()
    cursor.expect("BY")
    keys = cursor.names()
    cursor.expect("WITHIN")
    within = cursor.string()
    return Deduplicate(view, keys, within, "first" if cursor.accept("KEEP", "FIRST") else "any")


def _top(cursor: Cursor) -> Top:
    n = cursor.whole()
    cursor.expect("OF")
    view = cursor.name()
    keys = cursor.names() if cursor.accept("PER") else ()
    cursor.expect("ORDER", "BY")
    by = tuple(_order(one) for one in cursor.split(*_AFTER_ORDER).by_comma())
    within = window(cursor) if cursor.accept("IN") else None
    ties: Literal["rank", "dense_rank"] | None = "rank" if cursor.accept("WITH", "TIES") else None
    ties = "dense_rank" if cursor.accept("WITH", "DENSE", "TIES") else ties
    return Top(n, view, keys, by, within, ties, "updates" if cursor.accept("EMIT", "UPDATES") else "final")


def _order(cursor: Cursor) -> OrderBy:
    expression = cursor.until(("ASC",), ("DESC",))
    # Ascending by default, as in SQL.
    order: Literal["asc", "desc"] = "desc" if cursor.accept("DESC") else "asc"
    cursor.accept("ASC")
    if cursor.sees("NULLS"):
        raise cursor.refused("no NULLS FIRST or NULLS LAST", "remove it: a null is less than any value")
    cursor.end()
    return OrderBy(expression, order)


def _match(cursor: Cursor) -> Match:
    view = cursor.name()
    cursor.expect("BY")
    keys = cursor.names()
    cursor.expect("WITHIN")
    within = cursor.string()
    cursor.expect("STEPS")
    steps = tuple(_step(one) for one in cursor.brackets().by_comma())
    unless = cursor.rest() if cursor.accept("UNLESS") else None
    return Match(view, keys, within, steps, unless)


def _step(cursor: Cursor) -> MatchStep:
    name = cursor.name().text
    times = cursor.whole() if cursor.accept("TIMES") else 1
    follows = cursor.accept("NEXT")
    cursor.expect("WHEN")
    return MatchStep(name, times, follows, cursor.rest())


def _divert(cursor: Cursor) -> Divert:
    view = cursor.name()
    cursor.expect("TO")
    tag = cursor.name().text
    cursor.expect("WHEN")
    when = cursor.until(("BECAUSE",))
    cursor.expect("BECAUSE")
    return Divert(view, tag, when, cursor.rest())


# First word -> what parses the rest.
_NAMED_QUERIES: Mapping[str, Callable[[Cursor], Query]] = {
    "DEDUPLICATE": _deduplicate,
    "TOP": _top,
    "MATCH": _match,
    "DIVERT": _divert,
    "CALL": call,
    "PROCESS": process,
}
