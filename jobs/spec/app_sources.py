"""The source files of an app: its own, and those of the modules that it imports from the team's folders, read from syntax trees.

Nothing is imported. A module that is imported by a computed name, or from an installed package, is not found.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.jobs.spec.app_module import find, is_sql
from penstock.jobs.sql.statements import CreateFunction, Statement
from penstock.sizing.errors import PenstockError

# The kit's own modules are not part of an app: its release is known.
_OWN = "penstock"


def app_sources(app: str, beside: Path, app_path: Sequence[Path] = ()) -> dict[str, Path]:
    """Name -> file of the app's module, or of its text in SQL, and of the modules that it imports, directly or through others.

    Args:
        app: as in the spec.
        beside: folder of the spec.
        app_path: further folders, searched in this order.

    Raises:
        PenstockError: those of `find`.
    """
    file = find(app, beside, app_path)
    found, open_ = {app: file}, [app]
    while open_:
        name = open_.pop()
        imports = _functions(found[name]) if is_sql(name) else _imports(found[name], name)
        for imported in imports:
            module = _module(imported, [beside, *app_path])
            if module is not None and imported not in found:
                found[imported] = module
                open_.append(imported)
    return found


def content_hash(files: Mapping[str, Path]) -> str:
    """A hash of files by their names and content: 16 hexadecimal digits.

    Args:
        files: name -> file.
    """
    hashed = hashlib.sha256()
    for name, file in sorted(files.items()):
        content = file.read_bytes()
        hashed.update(f"{name}\n{len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def _imports(file: Path, module: str) -> Iterator[str]:
    """Names of the modules that a file may import: of ``from a import b`` both ``a`` and ``a.b``, and the packages of each."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        # Building the app reports it, with its line.
        return
    yield from _packages(_functions_of_calls(tree, file))
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        for name in _named(node, package):
            yield from _packages([name])


def _packages(names: Iterable[str]) -> Iterator[str]:
    """The packages of each name, and the name itself."""
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[: length + 1]) for length in range(len(parts)))


def _functions(file: Path) -> Iterator[str]:
    """Modules of the functions that an app in SQL creates."""
    from penstock.jobs.sql import parsing

    # Building the app reports an error, with its line.
    with suppress(PenstockError):
        yield from _packages(_modules(parsing.read(file)[1]))


def _functions_of_calls(tree: ast.Module, file: Path) -> Iterator[str]:
    """Modules of the functions that the ``job.sql`` calls of a module create."""
    text = file.read_text(encoding="utf-8")
    if ".sql(" not in text:
        return
    from penstock.jobs.sql import literals, parsing

    for script in literals.called(tree, text, file):
        with suppress(PenstockError):
            yield from _modules(parsing.embedded(script))


def _modules(statements: list[Statement]) -> list[str]:
    return [one.python.text.rpartition(".")[0] for one in statements if isinstance(one, CreateFunction)]


def _named(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    # One dot is the module's own package, each further one the package around it.
    parts = package.split(".")
    outer = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
    base = ".".join(filter(None, [outer, node.module or ""]))
    return [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else [alias.name for alias in node.names]


def _module(name: str, folders: Sequence[Path]) -> Path | None:
    if name.partition(".")[0] == _OWN:
        return None
    for folder in folders:
        stem = folder.joinpath(*name.split("."))
        for candidate in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None
