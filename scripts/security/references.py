"""Placeholders for what only Terraform knows: a synthesized stack's references to resources, outputs of other stacks, and the partition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.scripts.provisioning.stacks import Stack

# `$${` is Terraform's escape of `${`, not a reference.
_REFERENCE = re.compile(r"(?<!\$)\$\{(?P<type>[a-z0-9_]+)\.(?P<name>[\w-]+)\.(?P<attribute>[\w.\[\]-]+)\}")
# The only function in policies of the shipped stacks: ARNs of topics are made from the cluster's.
_REPLACE = re.compile(r'(?<!\$)\$\{replace\((?P<reference>[\w.\[\]-]+), "(?P<old>[^"]*)", "(?P<new>[^"]*)"\)\}')
_ANY = re.compile(r"(?<!\$)[$%]\{")
_OTHER_STACK = "cross-stack-reference-input-"
_PARTITION = {"partition": "aws", "dns_suffix": "amazonaws.com", "id": "aws"}
# Data sources that ask AWS.
_READ = "aws_eks_cluster"
_IDS = {
    "aws_vpc": "vpc-0123456789abcdef0",
    "aws_subnet": "subnet-0123456789abcdef0",
    "aws_security_group": "sg-0123456789abcdef0",
}
_CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
_REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


class References:
    """The placeholders of an environment's stacks.

    Args:
        stacks: all stacks of the environment, for the outputs that stacks refer to.
    """

    def __init__(self, stacks: Iterable[Stack]) -> None:
        self._outputs: dict[str, Mapping[str, Any]] = {stack.name: stack.content().get("output", {}) for stack in stacks}

    def resolved(self, value: Any) -> Any:
        """Replace each reference by a placeholder in the format that AWS uses. Other expressions are left as they are.

        Args:
            value: strings, lists and mappings of a synthesized stack.
        """
        if isinstance(value, Mapping):
            return {key: self.resolved(one) for key, one in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self.resolved(one) for one in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        text = _REPLACE.sub(lambda match: self._text(f"${{{match['reference']}}}").replace(match["old"], match["new"]), text)
        return _REFERENCE.sub(self._stand_in, text)

    def _stand_in(self, reference: re.Match[str]) -> str:
        if reference["type"] != "data":
            return _of_resource(reference["type"], reference["name"], reference["attribute"])
        kind, attribute = reference["name"], reference["attribute"].split(".")
        if kind == _READ:
            return _of_data(reference)
        if kind == "aws_partition":
            return _PARTITION.get(attribute[-1], reference[0])
        if kind == "terraform_remote_state" and len(attribute) == len(("stack", "outputs", "name")):
            return self._of_another(attribute[0].removeprefix(_OTHER_STACK), attribute[-1], reference[0])
        return reference[0]

    def _of_another(self, stack: str, output: str, reference: str) -> str:
        outputs = self._outputs.get(stack, {})
        if output not in outputs:
            return reference
        made = self.resolved(outputs[output]["value"])
        return made if isinstance(made, str) else json.dumps(made)


def without_reads(content: Mapping[str, Any]) -> dict[str, Any]:
    """A stack's configuration without the data sources that ask AWS; what refers to one has a placeholder instead.

    Args:
        content: of a synthesized stack.
    """
    data = {kind: named for kind, named in content.get("data", {}).items() if kind != _READ}
    rest = {name: _without_reads(value) for name, value in content.items() if name != "data"}
    return {**rest, **({"data": data} if data else {})}


def _without_reads(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_reads(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_reads(one) for one in value]
    return _REFERENCE.sub(lambda match: _of_data(match) if match["name"] == _READ else match[0], value) if isinstance(value, str) else value


def _of_data(reference: re.Match[str]) -> str:
    name, _, attribute = reference["attribute"].partition(".")
    return _of_resource(reference["name"], name, attribute)


def is_resolved(text: str) -> bool:
    """Whether a text has no expression of Terraform's left."""
    return _ANY.search(text) is None


def unescaped(text: str) -> str:
    """Terraform's value of a text without expressions."""
    return text.replace("$${", "${").replace("%%{", "%{")


def _of_resource(kind: str, name: str, attribute: str) -> str:
    if "arn" in attribute.split(".")[-1]:
        return f"arn:aws:{kind.split('_')[1]}:us-east-1:123456789012:{name}"
    if "certificate" in attribute:
        return _CERTIFICATE
    if attribute in ("id", "vpc_id"):
        return _IDS.get(kind, name)
    if attribute == "repository_url":
        return f"{_REGISTRY}/{name}"
    if "endpoint" in attribute or "issuer" in attribute or "url" in attribute:
        return f"https://{name}.example.com"
    return name
