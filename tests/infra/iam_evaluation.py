"""IAM's decision on a request: an evaluation of policies, independent of the code that writes them.

Source: IAM User Guide, "Policy evaluation logic" and "Condition operators", as far as the policies of the stacks use them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

Context = Mapping[str, Any]


def allowed(statements: Iterable[Mapping[str, Any]], action: str, resource: str, context: Context | None = None) -> bool:
    """Whether the statements of one policy allow a request: one of them allows it, and none denies it."""
    effects = {each["Effect"] for each in statements if _applies(each, action, resource, context or {})}
    return effects == {"Allow"}


def _applies(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    return (
        any(fnmatchcase(action.lower(), pattern.lower()) for pattern in _listed(statement["Action"]))
        and any(_like(resource, pattern) for pattern in _listed(statement["Resource"]))
        and all(
            _meets(kind, context, key, _listed(values))
            for kind, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _meets(kind: str, context: Context, key: str, values: Sequence[str]) -> bool:
    has = context.get(key)
    if kind == "ForAllValues:StringEquals":
        return all(each in values for each in _listed(has or []))
    if has is None:
        return kind.endswith("IfExists")
    return any(_OPERATORS[kind.removesuffix("IfExists")](has, value) for value in values)


def _like(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))


_OPERATORS: Mapping[str, Callable[[Any, str], bool]] = {
    "StringEquals": operator.eq,
    "StringLike": _like,
    "ArnEquals": _like,
    "Bool": lambda has, value: str(has).lower() == value,
}


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)
