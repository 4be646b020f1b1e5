"""Functions named as ``module:function`` in a spec."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def named(reference: str) -> Callable[..., Any]:
    """The function.

    Raises:
        Exception: any exception of its module's import; AttributeError or TypeError if it does not exist or is not callable.
    """
    module, _, name = reference.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{reference} is a {type(function).__name__}")
    return function  # type: ignore[no-any-return]
