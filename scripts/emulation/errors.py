"""Errors of emulators other than moto (EMU-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, RunFailed


class LocalStackNotReached(RunFailed):
    """No LocalStack responds at the URL in LOCALSTACK_ENDPOINT, or it lacks a service that the stacks need."""

    code = "EMU-001"
    title = "LocalStack unreachable"


class OldLocalStack(RunFailed):
    """The LocalStack at the URL in LOCALSTACK_ENDPOINT is of a release that the stacks have not been tried on."""

    code = "EMU-002"
    title = "LocalStack too old"


class StacksLeft(CheckFailed):
    """A destroy on an emulated AWS has succeeded and left resources in Terraform's state."""

    code = "EMU-003"
    title = "resources left by a destroy"
