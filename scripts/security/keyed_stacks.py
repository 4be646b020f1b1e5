"""Stacks that Terraform and cdktf plan on their own without AWS: the keys that the provider wants are in the stacks."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.offline_plan import ASKS_NOBODY, stacks_offline

# No key of AWS: an apply of such a stack is refused.
_KEYS = {"access_key": "offline", "secret_key": "offline"}


def stacks_with_keys(environment: Environment, planned: EnvironmentPlans, folder: Path) -> list[Stack]:
    """Synthesize an environment's stacks so that any Terraform plans them against an empty account.

    Args:
        environment: the environment.
        planned: plans of its jobs.
        folder: the output folder; its local states have the outputs that other stacks use, and no resources.

    Raises:
        SynthFailed: RUN-006.
    """
    stacks = stacks_offline(environment, planned, folder)
    for stack in stacks:
        content = stack.content()
        for provider in content.get("provider", {}).get("aws", []):
            provider.pop("allowed_account_ids", None)
            provider.update({**ASKS_NOBODY, **_KEYS})
        (stack.folder / "cdk.tf.json").write_text(json.dumps(content), encoding="utf-8")
    return stacks
