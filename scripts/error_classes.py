"""The error classes of a package: those of its own `errors` module and of those of its sub-packages."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from functools import cache

from penstock.sizing.errors import Faults, PenstockError


@cache
def error_classes(package: str) -> tuple[type[PenstockError], ...]:
    """The concrete classes, in the order of their codes; packages without an `errors` module have none.

    Args:
        package: such as ``penstock.jobs``.
    """
    return tuple(sorted((kind for name in _error_modules(package) for kind in _own_classes(name)), key=lambda kind: kind.code))


def _error_modules(package: str) -> list[str]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
    inner = [name for module in modules if module.ispkg for name in _error_modules(module.name)]
    own = f"{package}.errors"
    return [own, *inner] if importlib.util.find_spec(own) is not None else inner


def _own_classes(name: str) -> list[type[PenstockError]]:
    module = importlib.import_module(name)
    classes = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, PenstockError)]
    return [kind for kind in classes if kind.__module__ == name and "code" in kind.__dict__ and kind is not Faults]
