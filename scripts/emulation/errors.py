"""Errors of emulators other than moto (EMU-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class LocalStackNotReached(RunFailed):
    """No LocalStack responds at the URL in LOCALSTACK_ENDPOINT, or it lacks a service that the stacks need."""

    code = "EMU-001"
    title = "LocalStack unreachable"
