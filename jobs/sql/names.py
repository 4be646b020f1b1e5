"""Names in the statements of a text: those that are duplicate, unknown, never read, or read twice by one output; and where rows go."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.jobs.sql.statements import (
    Call,
    CreateFunction,
    CreateSource,
    CreateView,
    Insert,
    Process,
    Query,
    Result,
    Select,
    SideOutput,
    Statement,
)
from penstock.jobs.sql.tokens import Fragment, Script
from penstock.sizing.errors import PenstockError


def misused(script: Script, statements: list[Statement], passed: Collection[str] | None = ()) -> list[PenstockError]:
    """Names that are duplicate, used before their definition, read twice by one output, or never.

    Args:
        script: the text.
        statements: all of it.
        passed: names of streams from elsewhere; None: any name may be one.
    """
    given: dict[str, Fragment] = {}
    read: set[str] = set()
    faults: list[PenstockError] = []
    for statement in statements:
        for name in _reads(statement):
            read.add(name.text)
            if passed is not None and name.text not in given and name.text not in passed:
                known = ", ".join([*passed, *given]) or "none yet"
                need = f"a source or a view created above: {known}"
                faults.append(script.refused(name, need, "correct the name, or create it before"))
        if isinstance(statement, CreateSource | CreateView):
            if statement.name.text in given or statement.name.text in (passed or ()):
                where = f"on line {given[statement.name.text].line}" if statement.name.text in given else "by a stream of the app"
                need = f"a unique name; this one is already used {where}"
                faults.append(script.refused(statement.name, need, "rename one of them"))
            given.setdefault(statement.name.text, statement.name)
    faults += _functions(script, statements)
    unread = [name for text, name in given.items() if text not in read]
    faults += [script.refused(name, "a view or an INSERT that reads it", "remove it, or read it") for name in unread if not faults]
    return faults or _read_twice(script, statements)


def _functions(script: Script, statements: list[Statement]) -> Iterator[PenstockError]:
    """Functions of the same name, and queries of functions that do not exist."""
    created: dict[str, Fragment] = {}
    for statement in statements:
        if isinstance(statement, CreateFunction):
            known = created.setdefault(statement.name.text.lower(), statement.name)
            if known is not statement.name:
                need = f"a unique name; line {known.line} creates a function {known.text}"
                yield script.refused(statement.name, need, "rename one of them")
        query = statement.query if isinstance(statement, CreateView | Insert | Result) else None
        if isinstance(query, Call | Process) and query.function.text.lower() not in created:
            need = f"a function created above: {', '.join(name.text for name in created.values()) or 'none yet'}"
            yield script.refused(query.function, need, "correct the name, or create it before")


def _reads(statement: Statement) -> tuple[Fragment, ...]:
    return statement.query.uses if isinstance(statement, CreateView | Insert | Result) else ()


def _read_twice(script: Script, statements: list[Statement]) -> list[PenstockError]:
    views = {one.name.text: one.query for one in statements if isinstance(one, CreateView)}
    faults: dict[Fragment, PenstockError] = {}
    for output in outputs(statements):
        first: dict[str, Fragment] = {}
        for name in _within(output[0].query, views):
            known = first.setdefault(name.text, name)
            if known is not name:
                need = f"each view once in an output: line {known.line} already reads it, and a second read would read its topics twice"
                fix = "combine both into one view, or write them to sinks of their own by two INSERTs"
                faults.setdefault(name, script.refused(name, need, fix))
    return list(faults.values())


def _within(query: Query, views: dict[str, Query]) -> Iterator[Fragment]:
    """Everything that a query reads, directly or through views."""
    for name in query.uses:
        yield name
        if name.text in views:
            yield from _within(views[name.text], views)


def outputs(statements: list[Statement]) -> list[list[Insert] | list[Result]]:
    """The statements that write, those of one output together: each is a query. Routes of one view are one output."""
    found: dict[str, list[Insert]] = {}
    for one in statements:
        if isinstance(one, Insert):
            route = isinstance(one.query, Select) and one.query.is_route
            found.setdefault(one.query.uses[0].text if route else f",{one.sink.text}", []).append(one)
    return [*found.values(), *([one] for one in statements if isinstance(one, Result))]


def misdirected(script: Script, statements: list[Statement]) -> list[PenstockError]:
    """No INSERT; and the second INSERT into a sink and the second SIDE OUTPUT of a tag, which would silently replace the first."""
    if not any(isinstance(statement, Insert) for statement in statements):
        at, need = max(len(script.text) - 1, 0), "INSERT INTO a sink of the spec"
        return [script.refused(at, need, "write the output to a sink", given=script.path.name)]
    return list(_output_twice(script, statements))


def _output_twice(script: Script, statements: list[Statement]) -> Iterator[PenstockError]:
    sinks: dict[str, Fragment] = {}
    tags: dict[str, Fragment] = {}
    for one in statements:
        if isinstance(one, Insert) and sinks.setdefault(one.sink.text, one.sink) is not one.sink:
            need = f"separate sinks; line {sinks[one.sink.text].line} already writes to {one.sink.text}"
            yield script.refused(one.sink, need, "combine the two conditions with OR, or use another sink")
        if isinstance(one, SideOutput) and tags.setdefault(one.tag, one.sink) is not one.sink:
            need = f"one sink per tag; line {tags[one.tag].line} sends {one.tag} to {tags[one.tag].text}"
            yield script.refused(one.sink, need, "remove one of them, or use FOR another tag")
