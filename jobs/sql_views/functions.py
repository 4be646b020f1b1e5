"""The functions in Python that a text creates: loaded from the app's modules, and called by its expressions and queries."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType

from penstock.jobs.blocks.calls.calls import call
from penstock.jobs.blocks.keyed.connect import ConnectedFunction, Keyed, connect
from penstock.jobs.blocks.keyed.declared import State, fields_of, list_of, map_of, type_of, value
from penstock.jobs.blocks.keyed.process import process
from penstock.jobs.sql.calls import SoleCall, called, sole_call
from penstock.jobs.sql.statements import Call, CreateFunction, FunctionKind, Process
from penstock.jobs.sql.tokens import Fragment, Script
from penstock.jobs.sql_views.tried import Tried
from penstock.jobs.stream.streams import Stream
from penstock.jobs.stream.task_errors import first_line

_AGGREGATES = ("aggregate", "table aggregate")
# Kind -> where its functions are called.
_PLACES: Mapping[FunctionKind, str] = {
    "table": "in FROM: LATERAL VIEW {name}(...) AS column",
    "aggregate": "alone in a SELECT with GROUP BY: {name}(...) AS column; compute with that column in a view of it",
    "table aggregate": "alone in a SELECT with GROUP BY: {name}(...) AS column; compute with that column in a view of it",
    "call": "by CALL {name} OF view KEY expression",
    "keyed": "by PROCESS view BY key WITH {name}",
}


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate function.

    Args:
        function: the function, from the list of a group's values.
        values: the aggregate that collects them, in the order of the values: a replay must pass the same.
        several: whether it returns any number of rows.
    """

    function: Callable[[Column], Column]
    values: Column
    several: bool


class Functions:
    """The functions of a text by their names, in lower case as Spark compares them.

    Args:
        tried: reports what can't be built.
        session: where scalar and table functions are registered for expressions.
        connections: name -> URL, credentials included.
    """

    def __init__(self, tried: Tried, session: SparkSession, connections: Mapping[str, str]) -> None:
        self._tried, self._session, self._connections = tried, session, connections
        self._created: dict[str, tuple[CreateFunction, Any]] = {}

    @property
    def _script(self) -> Script:
        return self._tried.script

    def create(self, statement: CreateFunction) -> None:
        """Loads a function. Raises SPEC-045 for a module, a name or a type that is not there."""
        name = statement.name.text.lower()
        function = self._loaded(statement.python)
        if statement.kind in ("scalar", "table"):
            self._refuse_builtin(statement.name)
            made = self._scalar(statement, function) if statement.kind == "scalar" else self._table(statement, function)
            self._tried.tried(statement.name, lambda: self._session.udf.register(name, made))
        elif statement.kind in _AGGREGATES:
            function = self._table(statement, function) if statement.kind == "table aggregate" else self._scalar(statement, function)
        elif isinstance(function, type):
            function = self._made(statement, function)
        self._created[name] = statement, function

    def refuse_misplaced(self, *expressions: Fragment) -> None:
        """Rejects functions in expressions that only a query can call."""
        elsewhere = {name: statement.kind for name, (statement, _) in self._created.items() if statement.kind in _PLACES}
        for expression in expressions if elsewhere else ():
            for name in called(self._script, expression, elsewhere):
                place = _PLACES[elsewhere[name.strip("`").lower()]].format(name=name)
                raise self._script.refused(expression, f"{name} {place}", "call it there")

    def refuse_no_table(self, name: Fragment) -> None:
        """Rejects what LATERAL VIEW calls if it is no table function."""
        self._of_kinds(name, ("table",), "explode(array), or a function of CREATE TABLE FUNCTION")

    def aggregate_call(self, expression: Fragment) -> AggregateCall | None:
        """The call of an aggregate function that an expression is; None if it is anything else."""
        found = sole_call(self._script, expression) if self._created else None
        known = self._created.get(found.name.lower()) if found is not None else None
        if found is None or known is None or known[0].kind not in _AGGREGATES:
            self.refuse_misplaced(expression)
            return None
        statement, function = known
        return AggregateCall(function, self._values(expression, found), statement.kind == "table aggregate")

    def _values(self, expression: Fragment, found: SoleCall) -> Column:
        if not found.arguments:
            raise self._script.refused(expression, "at least one argument", "pass the column whose values it is of")
        arguments = [F.expr(text) for text in found.arguments]
        one = arguments[0] if len(arguments) == 1 else F.struct(*(each.alias(f"a{n}") for n, each in enumerate(arguments, start=1)))
        return F.array_sort(F.collect_list(one))

    def rows(self, query: Call | Process, streams: list[Stream]) -> Stream:
        """The rows of a query that calls a function.

        Args:
            query: the query.
            streams: what it reads.
        """
        return self._call(query, streams[0]) if isinstance(query, Call) else self._process(query, streams)

    def _call(self, query: Call, stream: Stream) -> Stream:
        statement, function = self._of_kinds(query.function, ("call",), "a function of CREATE CALL FUNCTION")
        self.refuse_misplaced(query.key)
        name, result = statement.name.text.lower().replace("_", "-"), _text(statement.returns)
        options: dict[str, Any] = {name: value for name, value in statement.options if name != "connection"}
        return self._tried.tried(query.function, lambda: call(stream, function, name=name, key=query.key.text, result=result, **options))

    def _process(self, query: Process, streams: list[Stream]) -> Stream:
        statement, function = self._of_kinds(query.function, ("keyed",), "a function of CREATE KEYED FUNCTION")
        two = len(streams) == 2
        if two != isinstance(function, ConnectedFunction):
            need = "one input; for two the class is a ConnectedFunction" if two else "two inputs: PROCESS a BY key AND b BY key"
            raise self._script.refused(query.function, need, f"correct the inputs, or {statement.python.text}")
        asked: dict[str, Any] = {
            "output": self._tried.tried(statement.returns or statement.name, lambda: fields_of(_text(statement.returns))),
            "state": self._states(statement),
            "time": query.time,
            "order": "time" if query.ordered else "arrival",
            "updates": query.updates,
            **({"ttl": query.ttl} if query.ttl is not None else {}),
        }
        if two:
            sides = [Keyed(stream, one.keys) for stream, one in zip(streams, query.inputs, strict=True)]
            return self._tried.tried(query.function, lambda: connect(sides[0], sides[1], function, **asked))
        keys = query.inputs[0].keys
        return self._tried.tried(query.function, lambda: process(streams[0], keys, function, **asked))

    def _states(self, statement: CreateFunction) -> dict[str, State]:
        """An array is a list, a map is a map, and any other type is a value."""
        state = statement.state
        if state is None:
            return {}
        fields = self._tried.tried(state, lambda: fields_of(state.text))
        return {field.name: _state(field.dataType) for field in fields.fields}

    def _of_kinds(self, name: Fragment, kinds: Iterable[FunctionKind], need: str) -> tuple[CreateFunction, Any]:
        statement, function = self._created.get(name.text.lower(), (None, None))
        if statement is None or statement.kind not in kinds:
            raise self._script.refused(name, need, "create it before, or correct the name")
        return statement, function

    def _scalar(self, statement: CreateFunction, function: Any) -> Any:
        """The function as Spark calls it."""
        if hasattr(function, "returnType") and hasattr(function, "evalType"):
            if statement.returns is not None:
                raise self._script.refused(statement.returns, "no RETURNS: the function is one of Spark's, with a type", "remove it")
            return function if statement.deterministic else function.asNondeterministic()
        if not callable(function):
            raise self._script.refused(statement.python, "a function", "correct the name")
        made = F.udf(function, self._type(statement))
        return made if statement.deterministic else made.asNondeterministic()

    def _table(self, statement: CreateFunction, function: Any) -> Any:
        if not callable(function):
            raise self._script.refused(statement.python, "a function that returns an iterable", "correct the name")
        made = F.udf(_Listed(function), ArrayType(self._type(statement)), useArrow=False)
        return made if statement.deterministic else made.asNondeterministic()

    def _type(self, statement: CreateFunction) -> DataType:
        returns = statement.returns
        if returns is None:
            raise self._script.refused(statement.name, "RETURNS and the type of what it returns", "add RETURNS before AS")
        return self._tried.tried(returns, lambda: fields_of(returns.text) if statement.rows else type_of(returns.text))

    def _loaded(self, python: Fragment) -> Any:
        module, _, name = python.text.rpartition(".")
        if not module or not name.isidentifier():
            raise self._script.refused(python, "a module and a name in it, such as 'functions.risk'", "correct the name")
        try:
            return getattr(importlib.import_module(module), name)
        except AttributeError:
            raise self._script.refused(python, f"a name that the module {module} has", "correct the name, or define it there") from None
        except Exception as error:
            need = f"a module that can be imported; {type(error).__name__}: {first_line(error)}"
            fix = "correct the module; it is found beside the spec and by --app-path"
            raise self._script.refused(python, need, fix) from error

    def _made(self, statement: CreateFunction, kind: type) -> Any:
        """An object of a class, made with the URL of its connection if it has one."""
        connection = dict(statement.options).get("connection")
        if connection is not None and connection not in self._connections:
            need = f"a connection of the spec: {', '.join(self._connections) or 'it has none'}"
            raise self._script.refused(statement.name, need, "correct the name", given=f"CONNECTION '{connection}'")
        arguments = [] if connection is None else [self._connections[str(connection)]]
        try:
            return kind(*arguments)
        except Exception as error:
            taken = "the URL of its connection" if arguments else "no arguments"
            need = f"a class that takes {taken}; {type(error).__name__}: {first_line(error)}"
            raise self._script.refused(statement.python, need, "correct the class") from error

    def _refuse_builtin(self, name: Fragment) -> None:
        quoted = name.text.lower().replace("'", "''")
        if self._session.sql(f"SHOW SYSTEM FUNCTIONS LIKE '{quoted}'").take(1):
            raise self._script.refused(name, "a name that is no function of Spark SQL", "rename the function")


def _state(kind: DataType) -> State:
    if isinstance(kind, ArrayType):
        return list_of(kind.elementType)
    return map_of(kind.keyType, kind.valueType) if isinstance(kind, MapType) else value(kind)


def _text(fragment: Fragment | None) -> str:
    assert fragment is not None
    return fragment.text


@dataclass(frozen=True)
class _Listed:
    """A function of any number of rows, in the form that Spark calls."""

    function: Callable[..., Iterable[Any] | None]

    def __call__(self, *arguments: Any) -> list[Any]:
        return list(self.function(*arguments) or ())
