"""Validation of requests and responses against botocore's model of the service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from botocore.model import Shape

# Limits in botocore's model that AWS has raised since. Source: MSK's developer guide, "Amazon MSK quota", 60 brokers per KRaft cluster.
RAISED_LIMITS = {"__integerMin1Max15": 60}

_TYPES: Mapping[str, tuple[type, ...]] = {
    "structure": (Mapping,),
    "map": (Mapping,),
    "list": (Sequence,),
    "string": (str,),
    "blob": (bytes, str),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (datetime,),
}


def request_faults(value: Any, shape: Shape | None) -> list[str]:
    """Validate a request's parameters.

    Args:
        value: the parameters by their names in the model.
        shape: the operation's input; None if it has none.

    Returns:
        A sentence per error: type, required member, enum, pattern, length or range.
    """
    return [] if shape is None else list(_faults(value, shape, "", sizes=True))


def answer_faults(value: Any, shape: Shape | None) -> list[str]:
    """Validate a response like `request_faults`, and reject members that are not in the model.

    Lengths are not checked: AWS returns empty lists and maps that it would not accept.
    """
    if shape is None:
        return [f"{name} is not in an empty answer" for name in value]
    return list(_faults(value, shape, "", sizes=False))


def _faults(value: Any, shape: Shape, path: str, *, sizes: bool) -> Iterator[str]:
    expected = _TYPES[shape.type_name]
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        yield f"{path or 'the whole'} is {type(value).__name__}, not {shape.type_name}"
        return
    inside = _INSIDE.get(shape.type_name)
    if inside:
        yield from inside(value, shape, path, sizes)
    if sizes:
        yield from _size_faults(value, shape, path)


def _list_faults(value: Sequence[Any], shape: Any, path: str, sizes: bool) -> Iterator[str]:
    for index, item in enumerate(value):
        yield from _faults(item, shape.member, f"{path}[{index}]", sizes=sizes)


def _map_faults(value: Mapping[Any, Any], shape: Any, path: str, sizes: bool) -> Iterator[str]:
    for key, item in value.items():
        yield from _faults(key, shape.key, f"{path} key {key!r}", sizes=sizes)
        yield from _faults(item, shape.value, f"{path}[{key!r}]", sizes=sizes)


def _structure_faults(value: Mapping[str, Any], shape: Any, path: str, sizes: bool) -> Iterator[str]:
    members: Mapping[str, Shape] = shape.members
    inner = f"{path}." if path else ""
    yield from (f"{inner}{name} is missing" for name in shape.metadata.get("required", ()) if value.get(name) is None)
    # A document type accepts any value.
    if shape.metadata.get("document"):
        return
    for name, item in value.items():
        if name not in members:
            yield f"{inner}{name} is not known"
        elif item is not None:
            yield from _faults(item, members[name], f"{inner}{name}", sizes=sizes)


def _string_faults(value: str, shape: Any, path: str, sizes: bool) -> Iterator[str]:
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed:
        yield f"{path} is {value!r}, not one of {', '.join(allowed)}"
    pattern = _pattern(shape.metadata.get("pattern"))
    if pattern and not pattern.search(value):
        yield f"{path} is {value!r}, which does not match {pattern.pattern}"


@cache
def _pattern(text: str | None) -> re.Pattern[str] | None:
    """Compile a pattern of the model; None if it has none, or one in Java's syntax only."""
    try:
        return re.compile(text) if text else None
    except re.error:
        return None


def _size_faults(value: Any, shape: Shape, path: str) -> Iterator[str]:
    if shape.type_name in ("boolean", "timestamp", "structure"):
        return
    size = value if isinstance(value, int | float) else len(value)
    lowest = shape.metadata.get("min")
    highest = RAISED_LIMITS.get(shape.name, shape.metadata.get("max"))
    if lowest is not None and size < lowest:
        yield f"{path} has {size}, less than {lowest}"
    if highest is not None and size > highest:
        yield f"{path} has {size}, more than {highest}"


_INSIDE: Mapping[str, Callable[[Any, Any, str, bool], Iterator[str]]] = {
    "structure": _structure_faults,
    "list": _list_faults,
    "map": _map_faults,
    "string": _string_faults,
}
