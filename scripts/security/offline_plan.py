"""Plans of stacks without AWS: what Terraform creates from an empty state.

The provider makes no requests: it neither checks the credentials nor looks up the account. References to another stack are resolved from
a state of that stack with plausible names. The resources are planned exactly as they were synthesized.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.provisioning.stacks import Stack, synthesized
from penstock.scripts.provisioning.terraform import Progress, Terraform

# Source: the AWS provider's documentation, "Provider configuration".
_ASKS_NOBODY: dict[str, Any] = {
    "skip_credentials_validation": True,
    "skip_requesting_account_id": True,
    "skip_region_validation": True,
    "skip_metadata_api_check": "true",
}
_KEYS = {"AWS_ACCESS_KEY_ID": "offline", "AWS_SECRET_ACCESS_KEY": "offline", "AWS_EC2_METADATA_DISABLED": "true"}
_IDS = {
    "aws_vpc": "vpc-0123456789abcdef0",
    "aws_subnet": "subnet-0123456789abcdef0",
    "aws_security_group": "sg-0123456789abcdef0",
}
_REFERENCE = re.compile(r"\$\{(?P<type>[a-z0-9_]+)\.(?P<name>[\w-]+)\.(?P<attribute>[\w.\[\]-]+)\}")
_CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="


def stacks_offline(environment: Environment, planned: EnvironmentPlans, folder: Path) -> list[Stack]:
    """Synthesize an environment's stacks so that they can be planned without AWS.

    Args:
        environment: the environment.
        planned: plans of its jobs.
        folder: an empty folder.

    Raises:
        SynthFailed: RUN-006.
    """
    # A state in S3 cannot be read without AWS.
    stacks = synthesized(environment.with_spec(state=None), folder, planned=planned, state=folder / "state", base=_offline(os.environ))
    for stack in stacks:
        _ask_nobody(stack)
        _write_state(stack)
    return stacks


def plan(stack: Stack, progress: Progress = lambda said: None) -> Mapping[str, Any]:
    """Plan an AWS stack.

    Args:
        stack: a stack from `stacks_offline`.
        progress: called with the current step.

    Returns:
        The plan in the format of ``terraform show -json``.

    Raises:
        PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
    """
    progress(f"planning {stack.name}")
    return Terraform(stack.folder, environment=_offline(os.environ)).plan_to(stack.folder / "offline.tfplan")


def _offline(base: Mapping[str, str]) -> dict[str, str]:
    return {**{name: value for name, value in base.items() if not name.startswith("AWS_")}, **_KEYS}


def _ask_nobody(stack: Stack) -> None:
    file = stack.folder / "cdk.tf.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    for provider in content.get("provider", {}).get("aws", []):
        provider.pop("allowed_account_ids", None)
        provider.update(_ASKS_NOBODY)
    file.write_text(json.dumps(content), encoding="utf-8")


def _write_state(stack: Stack) -> None:
    """A state with the stack's outputs and no resources."""
    path: str = stack.content()["terraform"]["backend"]["local"]["path"]
    file = (stack.folder / path).resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    outputs = {name: _output(output["value"]) for name, output in stack.content().get("output", {}).items()}
    state = {"version": 4, "terraform_version": "1.6.0", "serial": 1, "lineage": "offline", "outputs": outputs, "resources": []}
    file.write_text(json.dumps(state), encoding="utf-8")


def _output(value: Any) -> dict[str, Any]:
    made = resolved(value)
    return {"value": made, "type": _type(made)}


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return ["tuple", [_type(one) for one in value]]
    if isinstance(value, dict):
        return ["object", {key: _type(one) for key, one in value.items()}]
    return "string"


def resolved(value: Any) -> Any:
    """Replace each reference to a resource by a placeholder in the format that AWS uses.

    Args:
        value: strings, lists and mappings of a synthesized stack.
    """
    if isinstance(value, Mapping):
        return {key: resolved(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [resolved(one) for one in value]
    return _REFERENCE.sub(_stand_in, value) if isinstance(value, str) else value


def _stand_in(reference: re.Match[str]) -> str:
    kind, name, attribute = reference["type"], reference["name"], reference["attribute"]
    if "arn" in attribute.split(".")[-1]:
        return f"arn:aws:{kind.split('_')[1]}:us-east-1:123456789012:{name}"
    if "certificate" in attribute:
        return _CERTIFICATE
    if attribute in ("id", "vpc_id"):
        return _IDS.get(kind, name)
    if "endpoint" in attribute or "issuer" in attribute or "url" in attribute:
        return f"https://{name}.example.com"
    return name
