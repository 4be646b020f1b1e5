"""Where Terraform keeps the state of a stack."""

from __future__ import annotations

import os
from pathlib import Path

from cdktf import App, LocalBackend, TerraformStack

from infra.environment import Environment

# The folder of the states; by default that of this checkout's other leavings.
STATE_VARIABLE = "PENSTOCK_TERRAFORM_STATE"
DEFAULT_FOLDER = Path(".penstock/terraform")


def keep_state(stack: TerraformStack, environment: Environment) -> None:
    """Gives a stack a state of its own, in a file of its environment's, so that two environments never share one.

    The path is written relative to the stack's folder, so that a synthesized stack says nothing of the machine that made it.

    Args:
        stack: the stack, within an app.
        environment: the environment.
    """
    folder = Path(os.environ.get(STATE_VARIABLE) or DEFAULT_FOLDER).absolute()
    stack_folder = Path(App.of(stack).outdir).absolute() / "stacks" / stack.node.id
    LocalBackend(stack, path=os.path.relpath(folder / environment.name / f"{stack.node.id}.tfstate", stack_folder))
