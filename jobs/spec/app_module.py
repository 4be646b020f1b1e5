"""Reads an app without running it: its location, and what sizing needs from it.

`penstock size` runs without Spark, but importing an app would import Spark and run the module. PARALLELISM and OPERATORS are therefore
literals, read from the syntax tree; any other assignment to them is an error with its line. An app in SQL has neither: its operators are
counted from its statements.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict

from penstock.jobs.spec import python_operators
from penstock.jobs.spec.app_calls import called, origins
from penstock.jobs.spec.errors import AppLiteral, AppNotFound, AppSyntax, PackageShadowed
from penstock.sizing.errors import PenstockError, Place, raise_all
from penstock.sizing.python_workers import PythonUse
from penstock.sizing.targets import MAX_PARALLELISM

if TYPE_CHECKING:
    from penstock.jobs.sql.statements import Statement

StatefulOperator = Literal["join", "other"]
# Stateful block -> kinds of its Spark operators: a stream-stream join has more state stores than others. Each call of a block
# counts unless the app declares OPERATORS.
STATEFUL_BLOCKS: Mapping[str, tuple[StatefulOperator, ...]] = {
    "interval_join": ("join",),
    "window_join": ("other",),
    "co_group": ("other",),
    "temporal_join": ("other",),
    "regular_join": ("other",),
    "broadcast_join": ("other",),
    "aggregate": ("other",),
    "salted": ("other", "other"),
    "changelog": ("other", "other"),
    "top": ("other",),
    "process": ("other",),
    "connect": ("other",),
    "deduplicate": ("other",),
    "pattern": ("other",),
}

MAX_OPERATORS = 10_000
_OWN = "penstock"
# A module has a page or ten; a larger file is generated, and its syntax tree would take the second that sizing has.
MAX_BYTES = 1_000_000

# Attributes of a stream that give its DataFrame.
_DATAFRAMES = ("df", "transform")
_NAMES = ("PARALLELISM", "OPERATORS")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class AppModule(BaseModel):
    """The parts of an app that sizing uses.

    Args:
        path: path of the module's file.
        parallelism: PARALLELISM, or None.
        parallelism_line: line of its assignment.
        operators_line: line of the value of OPERATORS.
        operators: OPERATORS as a number, or None if it is not set.
        operator_names: OPERATORS as names; empty if it is a number or not set.
        operator_kinds: OPERATORS as names with the kind of their state, None for no state; empty if it is anything else.
        stateful_calls: calls of `STATEFUL_BLOCKS`, by name.
        uses_dataframes: whether it derives rows with Spark's own API.
        python_operators: what its tasks run in Python workers.
        outputs: calls of ``job.write``, each a query; at least 1.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    path: Path
    parallelism: int | None = None
    parallelism_line: int | None = None
    operators_line: int | None = None
    operators: int | None = None
    operator_names: tuple[str, ...] = ()
    operator_kinds: Mapping[str, StatefulOperator | None] = {}
    stateful_calls: tuple[str, ...] = ()
    uses_dataframes: bool = False
    python_operators: tuple[PythonUse, ...] = ()
    outputs: int = 1

    @property
    def changes_row_counts(self) -> bool:
        """Whether it has steps whose output need not have a row for each row of the input; what deduplication drops is counted."""
        return self.uses_dataframes or any(call != "deduplicate" for call in self.stateful_calls)

    @property
    def stateful_operators(self) -> tuple[StatefulOperator, ...]:
        """Spark's operators that keep state: the declared ones, else those of the blocks that the app calls."""
        if self.operator_kinds:
            return tuple(kind for kind in self.operator_kinds.values() if kind is not None)
        return tuple(operator for call in self.stateful_calls for operator in STATEFUL_BLOCKS[call])


def is_sql(app: str) -> bool:
    """Whether an app is an SQL file."""
    return app.endswith(".sql")


def sql_beside(app: str, beside: Path) -> dict[str, str]:
    """Name -> text of an SQL app beside its spec, which is deployed with it; empty for any other app."""
    path = beside / app
    return {app: path.read_text(encoding="utf-8")} if is_sql(app) and path.is_file() else {}


def find(app: str, beside: Path, app_path: Sequence[Path] = ()) -> Path:
    """Finds the file of a module: beside the spec, on the app path, in the folder of the `jobs` package, or in the current folder.

    Args:
        app: dotted name, such as ``penstock.jobs.apps.user_credit``, or the name of a ``.sql`` file, searched beside the spec and on the
            app path.
        beside: folder of the spec.
        app_path: further folders, searched in this order.

    Raises:
        AppNotFound: SPEC-009, with the searched folders and similar names.
        PackageShadowed: SPEC-046, one of the folders has a package with Penstock's own name.
    """
    for folder in (beside, *app_path):
        _refuse_shadow(folder)
    if is_sql(app):
        return _sql_file(app, [beside, *app_path])
    roots = _roots(beside, app_path)
    parts = app.split(".")
    for root in roots:
        stem = root.joinpath(*parts)
        for candidate in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
            if candidate.is_file():
                return candidate
    close = [name for root in roots for name in _close(root, parts)]
    need = f"{'/'.join(parts)}.py or {'/'.join(parts)}/__init__.py in {', '.join(str(root) for root in roots)}"
    meant = f"did you mean {' or '.join(list(dict.fromkeys(close))[:3])}?" if close else ""
    raise AppNotFound(need=need, fix=meant or "create the module, or add its folder with --app-path")


def read(path: Path) -> AppModule:
    """Reads the literals of a module, or the blocks of an SQL app.

    Raises:
        PenstockError: SPEC-010 for a PARALLELISM or OPERATORS that is not a literal in range, SPEC-012 for invalid Python, SPEC-045 for
            invalid SQL; several are raised as `Faults`.
    """
    if is_sql(path.name):
        return _read_sql(path)
    tree, text = _parse(path)
    literals: dict[str, ast.expr] = {}
    faults: list[PenstockError] = []
    for name in _NAMES:
        try:
            value = _literal_node(tree, name, path)
            if value is not None:
                literals[name] = value
        except AppLiteral as fault:
            faults.append(fault)
    parallelism = _checked(literals, faults, path, "PARALLELISM", MAX_PARALLELISM)
    operators = _checked(literals, faults, path, "OPERATORS", MAX_OPERATORS)
    in_sql = _called_in_sql(tree, text, path, faults)
    raise_all(faults)
    return AppModule(
        path=path,
        parallelism=parallelism if isinstance(parallelism, int) else None,
        parallelism_line=literals["PARALLELISM"].lineno if "PARALLELISM" in literals else None,
        operators_line=literals["OPERATORS"].lineno if "OPERATORS" in literals else None,
        operators=operators if isinstance(operators, int) else None,
        operator_names=tuple(operators) if isinstance(operators, tuple | dict) else (),
        operator_kinds=operators if isinstance(operators, dict) else {},
        stateful_calls=(*_blocks_called(tree), *in_sql.stateful),
        uses_dataframes=any(isinstance(node, ast.Attribute) and node.attr in _DATAFRAMES for node in ast.walk(tree)),
        python_operators=(*python_operators.of_module(tree), *in_sql.python),
        outputs=max(1, sum(1 for _ in _outputs(tree))),
    )


@dataclass(frozen=True)
class _Operators:
    """What statements in SQL run: stateful blocks by name, and Python operators."""

    stateful: tuple[str, ...] = ()
    python: tuple[PythonUse, ...] = ()


def _read_sql(path: Path) -> AppModule:
    # Imported here because most apps are modules, and importing the parser takes as long as reading the rest of a spec.
    from penstock.jobs.sql import parsing
    from penstock.jobs.sql.names import outputs

    _, statements = parsing.read(path)
    found = _operators_of(statements)
    return AppModule(path=path, stateful_calls=found.stateful, python_operators=found.python, outputs=len(outputs(statements)))


def _called_in_sql(tree: ast.Module, text: str, path: Path, faults: list[PenstockError]) -> _Operators:
    """Of the ``job.sql`` calls whose text is known without running the app; adds the errors of others."""
    if ".sql(" not in text:
        return _Operators()
    from penstock.jobs.sql import literals, parsing

    statements: list[Statement] = []
    for script in literals.called(tree, text, path):
        try:
            statements += parsing.embedded(script)
        except PenstockError as error:
            faults += error.errors
    return _operators_of(statements)


def _operators_of(statements: list[Statement]) -> _Operators:
    from penstock.jobs.sql.statements import Call, CreateFunction, CreateView, Deduplicate, Insert, Result, Select

    queries = [statement.query for statement in statements if isinstance(statement, CreateView | Insert | Result)]
    calls = tuple(block for query in queries for block in query.blocks)
    clients = ("call",) * sum(isinstance(query, Call) for query in queries)
    by_row = ("count_window",) * sum(isinstance(query, Select) and query.counts_rows for query in queries)
    first: list[PythonUse] = ["keyed" for query in queries if isinstance(query, Deduplicate) and query.keep == "first"]
    # Spark computes the functions of a stage in one operator.
    functions = any(isinstance(one, CreateFunction) and one.kind not in ("call", "keyed") for one in statements)
    return _Operators(calls, (*python_operators.of_calls((*calls, *clients, *by_row)), *first, *(("udf",) if functions else ())))


def _sql_file(app: str, folders: Sequence[Path]) -> Path:
    for folder in folders:
        if (folder / app).is_file():
            return folder / app
    names = [path.name for folder in folders for path in sorted(folder.glob("*.sql"))]
    close = difflib.get_close_matches(app, names, n=3, cutoff=0.6)
    need = f"{app} in {', '.join(str(folder) for folder in folders)}"
    raise AppNotFound(need=need, fix=f"did you mean {' or '.join(close)}?" if close else "create the file beside the spec")


def _refuse_shadow(folder: Path) -> None:
    """The folders of an app come first on the path of Spark's Python workers, before Penstock."""
    own = Path(str(files(_OWN))).resolve()
    for shadow in (folder / _OWN, folder / f"{_OWN}.py"):
        if shadow.exists() and shadow.resolve() != own:
            fix = f"rename it, for example to {_OWN}_jobs"
            raise PackageShadowed(path=str(shadow), need=f"no module or package named {_OWN} beside a spec or on --app-path", fix=fix)


def _roots(beside: Path, app_path: Sequence[Path]) -> list[Path]:
    roots = [beside, *app_path, Path(str(files(_OWN))).parent, Path.cwd()]
    seen: dict[Path, Path] = {}
    for root in roots:
        seen.setdefault(root.resolve(), root)
    return list(seen.values())


def _close(root: Path, parts: list[str]) -> Iterator[str]:
    """Names below a root that differ from the app's in one part."""
    folder = root
    for index, part in enumerate(parts):
        if (folder / part).is_dir() and index < len(parts) - 1:
            folder = folder / part
            continue
        last = index == len(parts) - 1
        for match in difflib.get_close_matches(part, _modules(folder, packages_only=not last), n=3, cutoff=0.6):
            if _is_module(folder / match, parts[index + 1 :]):
                yield ".".join([*parts[:index], match, *parts[index + 1 :]])
        return


def _modules(folder: Path, *, packages_only: bool) -> list[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    packages = [entry.name for entry in entries if entry.name.isidentifier() and entry.is_dir()]
    modules = [entry.stem for entry in entries if entry.suffix == ".py" and entry.stem != "__init__"]
    return packages if packages_only else [*packages, *modules]


def _is_module(start: Path, rest: list[str]) -> bool:
    """Whether there is a module, or a package that may be an app: it has a `build`."""
    stem = start.joinpath(*rest)
    package = stem / "__init__.py"
    return stem.with_name(f"{stem.name}.py").is_file() or (package.is_file() and "build" in package.read_text("utf-8", "replace"))


def _parse(path: Path) -> tuple[ast.Module, str]:
    """The syntax tree of a module, and its text."""
    try:
        with path.open("rb") as file:
            source = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise AppSyntax(at=Place(file=str(path)), need=error.strerror or "a readable file", fix="check the file") from None
    if len(source) > MAX_BYTES:
        raise AppSyntax(at=Place(file=str(path)), need=f"at most {MAX_BYTES} bytes", fix="move the data out of the module")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source), source.decode("utf-8", "replace")
    except SyntaxError as error:
        place = Place(file=str(path), line=error.lineno or 1, column=error.offset)
        raise AppSyntax(at=place, need=f"Python: {error.msg}", fix="correct the line") from None
    except (ValueError, RecursionError, MemoryError) as error:
        need = str(error) if isinstance(error, ValueError) else "less deeply nested expressions"
        raise AppSyntax(at=Place(file=str(path), line=1), need=need, fix="correct the module") from None


def _literal_node(tree: ast.Module, name: str, path: Path) -> ast.expr | None:
    """The value of the module's only assignment to a name; None if nothing binds it."""
    plain = {id(node): value for node in tree.body if (value := _plainly_assigned(node, name)) is not None}
    if bindings := sorted(_other_bindings(tree, name, set(plain)), key=lambda node: node.lineno):
        need = f"a single assignment of a literal, {_example(name)}, at the top level of the module"
        raise _fault(path, bindings[0], name, need=need, fix="assign a literal number or literal names, once")
    values = list(plain.values())
    if len(values) > 1:
        need = f"a single assignment; the first one is on line {values[0].lineno}"
        raise _fault(path, values[1], name, need=need, fix="remove one of them")
    return values[0] if values else None


def _plainly_assigned(node: ast.stmt, name: str) -> ast.expr | None:
    """The value of ``name = value`` and of ``name: type = value``."""
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return value
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            return value
        case _:
            return None


def _other_bindings(tree: ast.Module, name: str, plain: set[int]) -> Iterator[ast.expr]:
    """Other bindings of a module's name: within an if or a loop, by an import, by `global` in a function."""
    pending: list[ast.AST] = [node for node in tree.body if id(node) not in plain]
    while pending:
        node = pending.pop()
        if _binds(node, name):
            # All of these nodes have a line; ast has no type for that.
            yield cast("ast.expr", node)
        elif isinstance(node, _SCOPES):
            pending += [inner for inner in ast.walk(node) if isinstance(inner, ast.Global)]
        elif not isinstance(node, _COMPREHENSIONS):
            pending += ast.iter_child_nodes(node)


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name():
            return node.id == name and not isinstance(node.ctx, ast.Load)
        case ast.alias():
            return (node.asname or node.name.partition(".")[0]) == name
        case ast.Global():
            return name in node.names
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return node.name == name
        case ast.MatchMapping():
            return node.rest == name
        case _:
            return False


def _checked(
    literals: dict[str, ast.expr], faults: list[PenstockError], path: Path, name: str, most: int
) -> int | tuple[str, ...] | dict[str, StatefulOperator | None] | None:
    node = literals.get(name)
    if node is None:
        return None
    value = _operators(node) if name == "OPERATORS" and isinstance(node, ast.List | ast.Tuple | ast.Dict) else _whole(node)
    if value is None or (isinstance(value, int) and not 1 <= value <= most):
        need = f"{_example(name)}; a number from 1 to {most}"
        faults.append(_fault(path, node, name, need=need, fix=f"use a literal, such as {_example(name)}"))
        return None
    return value


def _whole(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _names(node: ast.List | ast.Tuple) -> tuple[str, ...] | None:
    names = tuple(item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value)
    return names if len(names) == len(node.elts) == len(set(names)) > 0 else None


def _operators(node: ast.List | ast.Tuple | ast.Dict) -> tuple[str, ...] | dict[str, StatefulOperator | None] | None:
    return _kinds(node) if isinstance(node, ast.Dict) else _names(node)


def _kinds(node: ast.Dict) -> dict[str, StatefulOperator | None] | None:
    """Name -> kind of its state, or None."""
    keys = [key for key in node.keys if key is not None]
    names = _names(ast.Tuple(elts=keys)) if len(keys) == len(node.keys) else None
    kinds = [value.value if isinstance(value, ast.Constant) else "" for value in node.values]
    if names is None or not all(kind is None or kind in get_args(StatefulOperator) for kind in kinds):
        return None
    return dict(zip(names, cast("list[StatefulOperator | None]", kinds), strict=True))


def _blocks_called(tree: ast.Module) -> Iterator[str]:
    """Names of the stateful blocks, one per call."""
    known = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := called(node.func, known)) in STATEFUL_BLOCKS:
            yield name


def _outputs(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls of ``job.write``, by the name that ``build`` gives to the job."""
    jobs = {node.args.args[0].arg for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build" and node.args.args}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="write")) if name in jobs:
                yield node


def _example(name: str) -> str:
    if name == "PARALLELISM":
        return "PARALLELISM = 91"
    return 'OPERATORS = 3, OPERATORS = ("read", "join", "write") with unique names, or {"read": None, "join": "join", "sum": "other"}'


def _fault(path: Path, node: ast.expr, name: str, *, need: str, fix: str) -> AppLiteral:
    place = Place(file=str(path), line=node.lineno, column=node.col_offset + 1)
    return AppLiteral(at=place, path=name, given=_source(node), need=need, fix=fix)


def _source(node: ast.AST) -> str:
    if not isinstance(node, ast.expr) or isinstance(node, ast.Name):
        return ""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return ""
    return text if len(text) <= 60 else f"{text[:57]}..."
