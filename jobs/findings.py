"""Converts pydantic's findings to readable errors: what is allowed, the closest match, and the fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import zip_longest
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
_NUMBERS = {"int_type", "int_from_float", "float_type"}
# YAML 1.1 wants a point and a sign: 1.0e+18 is a number, 1e18 a string. Source: https://yaml.org/type/float.html
_EXPONENT = r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?(?P<exponent>[0-9]+)"
_BOUNDS = {
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}


class Words(NamedTuple):
    """The texts of an error in addition to its place: what is needed, and the fix."""

    need: str
    fix: str


def unknown_field(model: type[BaseModel], location: Sequence[str | int]) -> Words:
    """Texts for an unknown field: the known fields, and the closest one.

    Args:
        model: model of the whole document.
        location: location given by pydantic; its last part is the unknown field.
    """
    known = known_fields(model, location[:-1])
    need = f"{'one of ' if len(known) > 1 else ''}{', '.join(known)}" if known else "a known field"
    close = _closest(str(location[-1]), known)
    return Words(need, f"did you mean {close}?" if close else "remove it")


def bad_value(details: Sequence[ErrorDetails], model: type[BaseModel]) -> Words:
    """Texts for a value of the wrong type or out of range.

    Args:
        details: the findings at one place; several are the branches of a union.
        model: model of the whole document.
    """
    if (exponent := _exponent(details)) is not None:
        return exponent
    if len(details) > 1 and all(detail["type"] in _TYPES for detail in details):
        allowed = list(dict.fromkeys(_TYPES[detail["type"]] for detail in details))
        return Words(f"{', '.join(allowed[:-1])} or {allowed[-1]}" if len(allowed) > 1 else allowed[0], "see the JSON Schema")
    detail = details[0]
    context = detail.get("ctx", {})
    kind, given = detail["type"], detail.get("input")
    if kind == "literal_error":
        return _choice(str(context["expected"]), given)
    if kind in _BOUNDS:
        return Words(_BOUNDS[kind].format(**context), "use a number in range")
    if kind == "string_pattern_mismatch":
        return Words(f"a string matching {context['pattern']}", "use a matching string")
    if kind in ("model_type", "model_attributes_type"):
        fields = known_fields(model, detail["loc"])
        return Words(f"a mapping with {', '.join(fields)}" if fields else "a mapping", "add the fields below it")
    if kind in _TYPES:
        return Words(_TYPES[kind], _retyped(kind, given))
    return Words(_lowered(detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")), "see the JSON Schema")


def known_fields(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The fields of the model at a location, as written in the document."""
    current: list[Any] = [model]
    for part in location:
        # A part that leads nowhere names a union's branch: all branches are followed anyway.
        current = [member for kind in current for member in _step(kind, part)] or current
    models = [branch for kind in current for branch in _branches(kind) if _is_model(branch)]
    # The fields that distinguish the models of a union come first, followed by the shared ones.
    by_place = zip_longest(*([field.alias or name for name, field in member.model_fields.items()] for member in models))
    return list(dict.fromkeys(name for names in by_place for name in names if name is not None))


def _step(kind: Any, part: str | int) -> Iterator[Any]:
    for branch in _branches(kind):
        if _is_model(branch):
            yield from (field.annotation for name, field in branch.model_fields.items() if part in (field.alias, name))
        elif get_origin(branch) in (dict, list, tuple) and get_args(branch):
            yield get_args(branch)[-1] if get_origin(branch) is dict else get_args(branch)[0]


def _branches(kind: Any) -> Iterator[Any]:
    """A type without Annotated, or all branches of a union."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _branches(get_args(kind)[0])
    elif origin in (Union, UnionType):
        for branch in get_args(kind):
            yield from _branches(branch)
    else:
        yield kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _choice(expected: str, given: object) -> Words:
    """``'a', 'b' or 'c'``, as pydantic writes a literal's values."""
    values = re.findall(r"'([^']*)'", expected)
    close = _closest(given, values) if isinstance(given, str) else None
    need = expected.replace("'", '"')
    if len(values) == 1:
        return Words(need, f"use {need}")
    return Words(f"one of {need}", f'did you mean "{close}"?' if close else "use one of these")


def _exponent(details: Sequence[ErrorDetails]) -> Words | None:
    """Texts for a number such as 1e18, which YAML reads as text; None for any other value."""
    kinds = [detail["type"] for detail in details if detail["type"] in _NUMBERS]
    written = re.fullmatch(_EXPONENT, str(details[0].get("input")))
    if not kinds or written is None:
        return None
    short = len(written["exponent"]) < 3
    fix = f"write {Decimal(written[0]):f}" if short else "write all digits"
    return Words(f"{_TYPES[kinds[0]]}; with an exponent like this it is text in YAML 1.1", fix)


def _retyped(kind: str, given: object) -> str:
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "quote it"
    if kind != "string_type" and isinstance(given, str) and re.fullmatch(r"-?[0-9.]+|true|false", given):
        return "remove the quotes"
    return f"use {_TYPES[kind]}"


def _closest(name: str, known: Sequence[str]) -> str | None:
    """The known name that was most likely meant; differences in case and underscores are ignored."""
    plain = {re.sub(r"[_-]", "", candidate).lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(re.sub(r"[_-]", "", name).lower(), list(plain), n=1, cutoff=0.6)
    return plain[matches[0]] if matches else None


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
