"""SQL in the source of a Python app: where a text begins in its file, and the texts of its ``job.sql`` calls, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from penstock.jobs.sql.tokens import Script


def located(text: str, path: Path, line: int) -> Script:
    """A text that a line of a Python file has passed to ``job.sql``.

    A place in it is a place in the file if the file has the text as it is, in one literal. Of a text that the program makes, or of a
    literal with escapes, only the line of the call is known.

    Args:
        text: the text.
        path: the file.
        line: of the call.
    """
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return Script(path, text, line, verbatim=False)
    found = [script for node in ast.walk(tree) if _is_text(node, text) and (script := _verbatim(node, source, path)) is not None]
    # The same text may be in several calls; one in a constant is before its call.
    return min(found, key=lambda script: abs(script.line - line), default=Script(path, text, line, verbatim=False))


def called(tree: ast.Module, source: str, path: Path) -> Iterator[Script]:
    """The texts of the ``job.sql`` calls of a module that are literals, or constants of the module."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    jobs = _names_of_jobs(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sql"), args=[text, *_]) if name in jobs:
                literal = constants.get(text.id) if isinstance(text, ast.Name) else text
                if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                    yield _verbatim(literal, source, path) or Script(path, literal.value, node.lineno, verbatim=False)


def _names_of_jobs(tree: ast.Module) -> set[str]:
    """Names of the job in ``build`` and in functions that it is passed to."""
    builds = [node.args.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"]
    return {"job", *(arguments[0].arg for arguments in builds if arguments)}


def _is_text(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value == text


def _verbatim(node: ast.AST, source: str, path: Path) -> Script | None:
    """None if the literal is not written as its value is."""
    assert isinstance(node, ast.Constant) and isinstance(node.value, str)
    literal = ast.get_source_segment(source, node) or ""
    before = literal.find(node.value)
    if not node.value or before < 0:
        return None
    # Columns of Python's syntax trees are bytes of UTF-8.
    indent = source.splitlines()[node.lineno - 1].encode()[: node.col_offset].decode()
    return Script(path, node.value, node.lineno, len(indent) + before + 1)
