"""Policy documents of a synthesized stack, read with placeholders for their references."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.references import References, is_resolved, unescaped

# Source: the AWS provider's documentation: arguments of its resources that take a policy document.
_ARGUMENTS = frozenset(
    {
        "access_policies",
        "access_policy",
        "assume_role_policy",
        "bucket_policy",
        "inline_policy",
        "policy",
        "policy_document",
        "policy_text",
        "redrive_allow_policy",
        "resource_policy",
    }
)
# These take other documents in an argument `policy`, and SQS's redrive policy is one of no principal.
_OTHER_DOCUMENTS = frozenset({"aws_ecr_lifecycle_policy", "aws_dlm_lifecycle_policy", "aws_ecr_registry_scanning_configuration"})
_OTHER_ARGUMENTS = frozenset({"redrive_allow_policy"})
_STATEMENT = '"Statement"'


class PolicyDocument(NamedTuple):
    """A policy document.

    Args:
        address: address of its resource.
        argument: the argument that holds it, such as ``assume_role_policy``.
        resource: all arguments of its resource, resolved.
        statements: its statements; empty if it cannot be read.
        unreadable: why it cannot be read; empty if it can.
    """

    address: str
    argument: str
    resource: Mapping[str, Any]
    statements: tuple[Mapping[str, Any], ...]
    unreadable: str = ""

    @property
    def kind(self) -> str:
        """Type of its resource."""
        return self.address.split(".", maxsplit=1)[0]


def documents(stack: Stack, references: References) -> Iterator[PolicyDocument]:
    """The policy documents of a stack's resources.

    Args:
        stack: a synthesized stack.
        references: the placeholders.
    """
    for address, arguments in stack.resources():
        for argument, text in _texts(arguments):
            if _is_policy(address, argument, text):
                yield _read(address, argument, references.resolved(arguments), references.resolved(text))


def _texts(value: Any, argument: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield argument, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _texts(one, name)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one, argument)


def _is_policy(address: str, argument: str, text: str) -> bool:
    if address.split(".", maxsplit=1)[0] in _OTHER_DOCUMENTS or argument in _OTHER_ARGUMENTS:
        return False
    return argument in _ARGUMENTS or _STATEMENT in text or "aws_iam_policy_document" in text


def _read(address: str, argument: str, resource: Mapping[str, Any], text: str) -> PolicyDocument:
    if not is_resolved(text):
        expression = text[max(text.find("${"), 0) :][:80]
        return PolicyDocument(address, argument, resource, (), f"{argument} has an expression that only an apply evaluates: {expression}")
    try:
        document = json.loads(unescaped(text), object_pairs_hook=_unique)
    except ValueError as error:
        return PolicyDocument(address, argument, resource, (), f"{argument} cannot be parsed: {error}")
    statements = document.get("Statement") if isinstance(document, dict) else None
    listed = [statements] if isinstance(statements, dict) else statements
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) and _is_complete(one) for one in listed):
        return PolicyDocument(address, argument, resource, (), f"{argument} has no statements with an effect and actions")
    return PolicyDocument(address, argument, resource, tuple(listed))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A second key would replace the first one here, and might not where the policy is used."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate key in {names}")
    return dict(pairs)


def _is_complete(statement: Mapping[str, Any]) -> bool:
    return statement.get("Effect") in ("Allow", "Deny") and ("Action" in statement or "NotAction" in statement)
