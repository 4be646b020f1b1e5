"""Plans of stacks without AWS: what Terraform creates from an empty state.

The provider makes no requests: it neither checks the credentials nor looks up the account. References to another stack are resolved from
a state of that stack with plausible names. The resources are planned exactly as they were synthesized.

The stacks are modules of one configuration, so that Terraform plans them side by side in one run: starting the provider and reading its
schema takes ten times longer than a plan of a stack.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.provisioning.stacks import Stack, synthesized
from penstock.scripts.provisioning.terraform import Progress, Terraform
from penstock.scripts.security.references import References, without_reads

# Source: the AWS provider's documentation, "Provider configuration".
ASKS_NOBODY: dict[str, Any] = {
    "skip_credentials_validation": True,
    "skip_requesting_account_id": True,
    "skip_region_validation": True,
    "skip_metadata_api_check": "true",
}
_KEYS = {"AWS_ACCESS_KEY_ID": "offline", "AWS_SECRET_ACCESS_KEY": "offline", "AWS_EC2_METADATA_DISABLED": "true"}
_CONFIGURATION = "cdk.tf.json"


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
    references = References(stacks)
    for stack in stacks:
        _write_state(stack, references)
    return stacks


def plans(
    stacks: Sequence[Stack], folder: Path, progress: Progress = lambda said: None, limit_s: float | None = None
) -> dict[str, Mapping[str, Any]]:
    """Plan AWS stacks, with one run of Terraform for all that have the same provider.

    Args:
        stacks: stacks from `stacks_offline`.
        folder: an empty folder for the configurations.
        progress: called with the current step.
        limit_s: timeout of each call of Terraform, in seconds; None: each call has its own.

    Returns:
        The plan of each stack in the format of ``terraform show -json``, by the stack's name.

    Raises:
        PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
    """
    made: dict[str, Mapping[str, Any]] = {}
    for number, group in enumerate(_with_one_provider(stacks)):
        progress("planning " + ", ".join(stack.name for stack in group))
        root = folder / str(number)
        _write_root(group, root)
        plan = Terraform(root, environment=_offline(os.environ), limit_s=limit_s).plan_to(root / "offline.tfplan")
        made.update({stack.name: _of_module(plan, stack.name) for stack in group})
    return made


def _with_one_provider(stacks: Sequence[Stack]) -> Iterator[list[Stack]]:
    groups: dict[str, list[Stack]] = {}
    for stack in stacks:
        content = stack.content()
        key = json.dumps([content.get("provider"), content["terraform"].get("required_providers")], sort_keys=True)
        groups.setdefault(key, []).append(stack)
    yield from groups.values()


def _write_root(stacks: Sequence[Stack], root: Path) -> None:
    content = stacks[0].content()
    providers = [{**_without_account(provider), **ASKS_NOBODY} for provider in content.get("provider", {}).get("aws", [])]
    required = {"required_providers": content["terraform"].get("required_providers", {})}
    for stack in stacks:
        _write_module(stack, root / "stacks" / stack.name, required)
    modules = {stack.name: {"source": f"./stacks/{stack.name}"} for stack in stacks}
    document = {"terraform": required, "provider": {**content.get("provider", {}), "aws": providers}, "module": modules}
    (root / _CONFIGURATION).write_text(json.dumps(document), encoding="utf-8")


def _without_account(provider: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in provider.items() if name != "allowed_account_ids"}


def _write_module(stack: Stack, folder: Path, required: Mapping[str, Any]) -> None:
    shutil.copytree(stack.folder, folder, ignore=shutil.ignore_patterns(".terraform*", "terraform*"))
    content = without_reads(stack.content())
    content.pop("provider", None)
    content["terraform"] = required
    for state in content.get("data", {}).get("terraform_remote_state", {}).values():
        # Relative to where Terraform runs, which is not the stack's folder.
        state["config"]["path"] = str((stack.folder / state["config"]["path"]).resolve())
    (folder / _CONFIGURATION).write_text(json.dumps(content), encoding="utf-8")


def _of_module(plan: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A module's part of a plan, as if the module were the root."""
    address = f"module.{name}"
    children = plan["planned_values"]["root_module"].get("child_modules", [])
    resources = [resource for child in children if child["address"] == address for resource in child.get("resources", [])]
    changes = [change for change in plan.get("resource_changes", []) if change.get("module_address") == address]
    configuration = plan.get("configuration", {})
    module = configuration.get("root_module", {}).get("module_calls", {}).get(name, {}).get("module", {})
    return {
        **{key: plan[key] for key in ("format_version", "terraform_version") if key in plan},
        "planned_values": {"root_module": {"resources": [_below(resource, address) for resource in resources]}},
        "resource_changes": [_below(change, address) for change in changes],
        "configuration": {**configuration, "root_module": module},
    }


def _below(entry: Mapping[str, Any], address: str) -> dict[str, Any]:
    entry = {key: value for key, value in entry.items() if key != "module_address"}
    return {**entry, "address": str(entry["address"]).removeprefix(f"{address}.")}


def _offline(base: Mapping[str, str]) -> dict[str, str]:
    return {**{name: value for name, value in base.items() if not name.startswith("AWS_")}, **_KEYS}


def _write_state(stack: Stack, references: References) -> None:
    """A state with the stack's outputs and no resources."""
    path: str = stack.content()["terraform"]["backend"]["local"]["path"]
    file = (stack.folder / path).resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    outputs = {name: _output(references.resolved(output["value"])) for name, output in stack.content().get("output", {}).items()}
    state = {"version": 4, "terraform_version": "1.6.0", "serial": 1, "lineage": "offline", "outputs": outputs, "resources": []}
    file.write_text(json.dumps(state), encoding="utf-8")


def _output(value: Any) -> dict[str, Any]:
    return {"value": value, "type": _type(value)}


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return ["tuple", [_type(one) for one in value]]
    if isinstance(value, dict):
        return ["object", {key: _type(one) for key, one in value.items()}]
    return "string"
