"""Parses the text of an SQL app into statements, without Spark: expressions stay text, which Spark parses when the job is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from penstock.jobs.errors import SqlRefused
from penstock.jobs.sql.cursor import Cursor
from penstock.jobs.sql.selecting import select, window
from penstock.jobs.sql.statements import (
    CreateSource,
    CreateView,
    Deduplicate,
    Divert,
    Insert,
    Match,
    MatchStep,
    Query,
    Select,
    SideOutput,
    Statement,
    Top,
    Union,
)
from penstock.jobs.sql.tokens import MAX_BYTES, Fragment, Script, Token, tokens
from penstock.sizing.errors import PenstockError, Place, raise_all

_STATEMENTS = "CREATE SOURCE, CREATE VIEW, INSERT INTO or SIDE OUTPUT"


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
    statements: list[Statement] = []
    faults: list[PenstockError] = []
    for some in _split(tokens(script)):
        try:
            statements.append(_statement(Cursor(script, some)))
        except SqlRefused as fault:
            faults.append(fault)
    raise_all(faults)
    raise_all(_misused(script, statements))
    return script, statements


def query(script: Script) -> Query:
    """Parses a text as a single query, whatever views it reads. Raises the errors of `read`."""
    cursor = Cursor(script, tokens(script))
    parsed = _query(cursor)
    cursor.end()
    return parsed


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
    if cursor.accept("CREATE", "SOURCE"):
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
    for words, read_ in (("DEDUPLICATE", _deduplicate), ("TOP", _top), ("MATCH", _match), ("DIVERT", _divert)):
        if cursor.accept(words):
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
    by = cursor.until(("ASC",), ("DESC",), ("IN", "TUMBLE"), ("IN", "HOP"), ("IN", "SESSION"), ("IN", "CUMULATE"), ("EMIT",))
    # Ascending by default, as in SQL.
    order: Literal["asc", "desc"] = "desc" if cursor.accept("DESC") else "asc"
    cursor.accept("ASC")
    within = window(cursor) if cursor.accept("IN") else None
    return Top(n, view, keys, by, order, within, "updates" if cursor.accept("EMIT", "UPDATES") else "final")


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


def _misused(script: Script, statements: list[Statement]) -> list[PenstockError]:
    """Names that are duplicate, used before their definition, used twice or never; and duplicate or missing outputs."""
    faults: list[PenstockError] = []
    given: dict[str, Fragment] = {}
    used: dict[str, Fragment] = {}
    for statement in statements:
        if isinstance(statement, SideOutput):
            continue
        reads = () if isinstance(statement, CreateSource) else statement.query.uses
        may_share = isinstance(statement, Insert) and isinstance(statement.query, Select) and statement.query.is_route
        for name in reads:
            faults += _use(script, name, given, used, may_share=may_share)
        if not isinstance(statement, Insert):
            if statement.name.text in given:
                need = f"a unique name; this one is already used on line {given[statement.name.text].line}"
                faults.append(script.refused(statement.name, need, "rename one of them"))
            given.setdefault(statement.name.text, statement.name)
    for text, name in given.items():
        if text not in used and not faults:
            faults.append(script.refused(name, "a view or an INSERT that reads it", "remove it, or read it"))
    return [*faults, *_outputs(script, statements), *_output_twice(script, statements)]


def _use(
    script: Script, name: Fragment, given: dict[str, Fragment], used: dict[str, Fragment], *, may_share: bool
) -> Iterator[PenstockError]:
    if name.text not in given:
        known = ", ".join(given) or "none yet"
        yield script.refused(name, f"a source or a view created above: {known}", "correct the name, or create it before")
    elif name.text in used and not may_share:
        need = f"each view once: line {used[name.text].line} already reads it, and a second read would read its topics twice"
        yield script.refused(name, need, "combine both into one view, or use INSERTs with SELECT * FROM one view WHERE ...")
    used.setdefault(name.text, name)


def _outputs(script: Script, statements: list[Statement]) -> list[PenstockError]:
    inserts = [statement for statement in statements if isinstance(statement, Insert)]
    if not inserts:
        return [
            script.refused(
                max(len(script.text) - 1, 0), "INSERT INTO a sink of the spec", "write the output to a sink", given=script.path.name
            )
        ]
    if len(inserts) == 1:
        return []
    faults: list[PenstockError] = []
    first = inserts[0]
    for one in inserts:
        if not (isinstance(one.query, Select) and one.query.is_route):
            need = "SELECT * FROM one view [WHERE ...] if there are several INSERTs"
            faults.append(script.refused(one.sink, need, "create a view of it"))
        elif isinstance(first.query, Select) and one.query.left.view.text != first.query.left.view.text:
            need = f"the view of line {first.sink.line}, {first.query.left.view.text}: an app in SQL has one output"
            faults.append(script.refused(one.query.left.view, need, "combine both into one view with a column that tells them apart"))
    return faults


def _output_twice(script: Script, statements: list[Statement]) -> Iterator[PenstockError]:
    """The second INSERT into a sink and the second SIDE OUTPUT of a tag, which would silently replace the first."""
    sinks: dict[str, Fragment] = {}
    tags: dict[str, Fragment] = {}
    for one in statements:
        if isinstance(one, Insert) and sinks.setdefault(one.sink.text, one.sink) is not one.sink:
            need = f"separate sinks; line {sinks[one.sink.text].line} already writes to {one.sink.text}"
            yield script.refused(one.sink, need, "combine the two conditions with OR, or use another sink")
        if isinstance(one, SideOutput) and tags.setdefault(one.tag, one.sink) is not one.sink:
            need = f"one sink per tag; line {tags[one.tag].line} sends {one.tag} to {tags[one.tag].text}"
            yield script.refused(one.sink, need, "remove one of them, or use FOR another tag")
