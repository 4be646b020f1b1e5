"""The location of a stack's Terraform state: a local file, or the environment's bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cdktf import App, LocalBackend, S3Backend, S3BackendEndpointConfig, TerraformStack

from penstock.infra.environment import Environment
from penstock.infra.state_key import state_key

# The folder of the states; by default in the working files of this checkout.
STATE_VARIABLE = "PENSTOCK_TERRAFORM_STATE"
DEFAULT_FOLDER = Path(".penstock/terraform")


def keep_state(stack: TerraformStack, environment: Environment) -> None:
    """Configures the state of a stack: in the environment's bucket if it has one, else in a file.

    Args:
        stack: the stack, within an app.
        environment: the environment.
    """
    if environment.spec.state is None:
        _in_a_file(stack, environment)
    else:
        _in_the_bucket(stack, environment, environment.spec.state.bucket)


def _in_a_file(stack: TerraformStack, environment: Environment) -> None:
    """A file per environment, so that two environments never share one.

    The path is relative to the stack's folder, so that a synthesized stack does not depend on the machine.
    """
    folder = Path(os.environ.get(STATE_VARIABLE) or DEFAULT_FOLDER).absolute()
    stack_folder = Path(App.of(stack).outdir).absolute() / "stacks" / stack.node.id
    LocalBackend(stack, path=os.path.relpath(folder / environment.name / f"{stack.node.id}.tfstate", stack_folder))


def _in_the_bucket(stack: TerraformStack, environment: Environment, bucket: str) -> None:
    """An encrypted object of the bucket, with a lock object next to it while a command runs.

    A stack that reads the outputs of another gets the other's location from cdktf, with the same settings.
    """
    place: dict[str, Any] = {"bucket": bucket, "key": state_key(environment.name, stack.node.id), "region": environment.spec.region}
    who = {"allowed_account_ids": [environment.spec.account]} if environment.spec.endpoints is None else _emulated(environment)
    backend = S3Backend(stack, **place, **who, encrypt=True)
    # cdktf 0.21 has no argument for it; Terraform supports it since 1.10.
    backend.add_override("use_lockfile", True)


def _emulated(environment: Environment) -> dict[str, Any]:
    """Settings for an emulated AWS, like those of its provider."""
    endpoints = environment.spec.endpoints
    assert endpoints is not None
    return {
        "endpoints": S3BackendEndpointConfig(s3=endpoints.of("s3"), sts=endpoints.of("sts"), iam=endpoints.of("iam")),
        "use_path_style": True,
        "skip_credentials_validation": True,
        "skip_region_validation": True,
        "skip_metadata_api_check": True,
        "skip_requesting_account_id": True,
        "max_retries": 2,
    }
