"""The functions that an app calls, by their names in this package, from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def called(function: ast.expr, known: Mapping[str, str]) -> str:
    """The name of the called function; empty for methods of anything but a module of this package, such as ``database.connect``."""
    if isinstance(function, ast.Name):
        return known.get(function.id, function.id)
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    is_ours = isinstance(function, ast.Attribute) and isinstance(root, ast.Name) and known.get(root.id)
    return function.attr if is_ours and isinstance(function, ast.Attribute) else ""


def origins(tree: ast.Module) -> dict[str, str]:
    """Name in the app -> its name in this package; without names from elsewhere."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            ours = (node.module or "").split(".")[0] == "penstock"
            found |= {alias.asname or alias.name: alias.name if ours else "" for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.split(".")[0]
                found[alias.asname or package] = alias.name if package == "penstock" else ""
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = ""
    return found
