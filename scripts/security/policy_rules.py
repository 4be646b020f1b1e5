"""Rules on policy documents, statement by statement."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.policy_documents import PolicyDocument, documents
from penstock.scripts.security.references import References
from penstock.scripts.security.rules import finding

_Statement = Mapping[str, Any]

# Source: the Service Authorization Reference, "Condition keys": keys that tell whose request it is. Others leave everybody in.
_WHO = frozenset(
    {
        "aws:principalaccount",
        "aws:principalarn",
        "aws:principalorgid",
        "aws:principalorgpaths",
        "aws:sourceaccount",
        "aws:sourcearn",
        "aws:sourceorgid",
        "aws:sourceowner",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "kms:calleraccount",
        "s3:dataaccesspointaccount",
    }
)
# A negated operator excludes somebody from everybody.
_NARROWING = ("stringequals", "stringlike", "arnequals", "arnlike")
# Source: the Service Authorization Reference, IAM and STS: actions that give a principal other rights than its own.
_ESCALATION = (
    "iam:PassRole",
    "sts:AssumeRole",
    "iam:CreateAccessKey",
    "iam:CreatePolicyVersion",
    "iam:PutRolePolicy",
    "iam:AttachRolePolicy",
    "iam:UpdateAssumeRolePolicy",
)
_POLICY_OF = {"aws_s3_bucket": ("aws_s3_bucket_policy", "bucket"), "aws_sqs_queue": ("aws_sqs_queue_policy", "queue_url")}


def findings(stack: Stack, references: References) -> Iterator[Finding]:
    """Findings in the policy documents of a stack.

    Args:
        stack: a synthesized stack.
        references: the placeholders.
    """
    found = tuple(documents(stack, references))
    for document in found:
        path = f"{stack.name}/{document.address}"
        if document.unreadable:
            yield finding("PEN_POLICY_1", path, document.unreadable)
        for statement in document.statements:
            if statement["Effect"] == "Allow":
                yield from (finding(rule, path, _name(statement)) for rule, breaks in _RULES.items() if breaks(document, statement))
    yield from _without_tls(stack, found)


def _name(statement: _Statement) -> str:
    return f"statement {statement['Sid']}" if "Sid" in statement else f"a statement on {_listed(statement.get('Action', 'NotAction'))[0]}"


def _everybody(document: PolicyDocument, statement: _Statement) -> bool:
    principal = statement.get("Principal")
    if isinstance(principal, Mapping):
        principal = [one for named in principal.values() for one in _listed(named)]
    return "*" in _listed(principal) and not _narrowed(statement)


def _narrowed(statement: _Statement) -> bool:
    for operator, keys in statement.get("Condition", {}).items():
        name = operator.lower().removeprefix("foranyvalue:")
        if name in _NARROWING and any(key.lower() in _WHO and not _anything(values) for key, values in keys.items()):
            return True
    return False


def _anything(values: Any) -> bool:
    return any(not str(value).strip("*?") for value in _listed(values))


def _everything(document: PolicyDocument, statement: _Statement) -> bool:
    # In a policy of a resource, such as a key's, the resource "*" is that resource.
    if not document.kind.startswith("aws_iam_") or not _all_resources(statement):
        return False
    return any(action.split(":", maxsplit=1)[-1].strip("*?") == "" for action in _listed(statement.get("Action")))


def _all_but(document: PolicyDocument, statement: _Statement) -> bool:
    return any(key in statement for key in ("NotAction", "NotPrincipal", "NotResource"))


def _escalates(document: PolicyDocument, statement: _Statement) -> bool:
    if document.argument == "assume_role_policy" or not document.kind.startswith("aws_iam_") or not _all_roles(statement):
        return False
    patterns = [action.lower() for action in _listed(statement.get("Action"))]
    return any(fnmatch.fnmatchcase(action.lower(), pattern) for action in _ESCALATION for pattern in patterns)


def _all_resources(statement: _Statement) -> bool:
    """Whether a resource names no resource: ``*``, or an ARN that ends with nothing else, such as ``arn:aws:s3:::*``."""
    return any(not resource.split(":", maxsplit=5)[-1].strip("*?/") for resource in _listed(statement.get("Resource")))


def _all_roles(statement: _Statement) -> bool:
    """Whether a resource matches the role of any name."""
    probe = "arn:aws:iam::111122223333:role/any-other"
    return any(fnmatch.fnmatchcase(probe, _in_account(resource)) for resource in _listed(statement.get("Resource")))


def _in_account(resource: str) -> str:
    parts = resource.split(":", maxsplit=5)
    return resource if len(parts) < len(("arn", "aws", "iam", "", "account", "role")) else ":".join([*parts[:4], "*", parts[5]])


_RULES: dict[str, Callable[[PolicyDocument, _Statement], bool]] = {
    "PEN_POLICY_2": _everybody,
    "PEN_POLICY_3": _everything,
    "PEN_POLICY_4": _all_but,
    "PEN_POLICY_5": _escalates,
}


def _without_tls(stack: Stack, found: Sequence[PolicyDocument]) -> Iterator[Finding]:
    """Source: Amazon S3's and SQS's security best practices, "Enforce encryption of data in transit"."""
    for address, _ in stack.resources():
        kind, name = address.split(".", maxsplit=1)
        if kind not in _POLICY_OF:
            continue
        policy_kind, argument = _POLICY_OF[kind]
        policies = [one for one in found if one.kind == policy_kind and _is_of(stack, one, argument, address)]
        if not any(_denies_plaintext(statement, kind) for one in policies for statement in one.statements):
            yield finding("PEN_POLICY_6", f"{stack.name}/{address}", f"no policy of {name} denies them")


def _is_of(stack: Stack, document: PolicyDocument, argument: str, address: str) -> bool:
    written = dict(stack.resources())[document.address].get(argument, "")
    return f"${{{address}." in written


def _denies_plaintext(statement: _Statement, kind: str) -> bool:
    service = {"aws_s3_bucket": "s3:*", "aws_sqs_queue": "sqs:*"}[kind]
    secure = statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport")
    everybody = statement.get("Principal") in ("*", {"AWS": "*"}, {"AWS": ["*"]})
    actions = _listed(statement.get("Action"))
    # The bucket, and the objects in it.
    whole = kind != "aws_s3_bucket" or _covers_objects(_listed(statement.get("Resource")))
    # Another condition beside this one would let some requests through.
    alone = len(statement.get("Condition", {})) == 1 and len(statement["Condition"].get("Bool", {})) == 1
    return (
        statement["Effect"] == "Deny" and str(secure) == "false" and everybody and alone and whole and bool({service, "*"} & set(actions))
    )


def _covers_objects(resources: Sequence[str]) -> bool:
    return "*" in resources or (any(one.endswith("/*") for one in resources) and any(not one.endswith("/*") for one in resources))


def _listed(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(one) for one in value]
