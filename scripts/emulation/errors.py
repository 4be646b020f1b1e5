"""The errors of the emulators that stand beside moto."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class LocalStackNotReached(RunFailed):
    """LOCALSTACK_ENDPOINT names a URL at which no LocalStack answers, or one that lacks a service that the stacks need."""

    code = "EMU-001"
    title = "LocalStack does not answer"
