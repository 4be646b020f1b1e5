"""Functions that a spec names as ``module:function``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def named(reference: str) -> Callable[..., Any]:
    """The function.

    Raises:
        Exception: whatever its module's import raises, AttributeError or TypeError: it is not there, or is no function.
    """
    module, _, name = reference.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{reference} is a {type(function).__name__}")
    return function  # type: ignore[no-any-return]
