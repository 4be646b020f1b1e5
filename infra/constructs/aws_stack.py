"""A stack of AWS resources."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from cdktf import TerraformOutput, TerraformStack
from constructs import Construct

from penstock.infra.constructs.provider import provider
from penstock.infra.environment import Environment
from penstock.infra.state import keep_state


class AwsStack(TerraformStack):
    """A stack with its own state and the AWS provider.

    Args:
        scope: the app.
        id: of the stack.
        environment: the environment of the stack.
    """

    def __init__(self, scope: Construct, id: str, environment: Environment) -> None:
        super().__init__(scope, id)
        self.environment = environment
        keep_state(self, environment)
        provider(self, environment)

    @classmethod
    def of(cls, construct: Any) -> AwsStack:
        """The stack of one of its constructs."""
        stack = TerraformStack.of(construct)
        assert isinstance(stack, AwsStack)
        return stack

    def export(self, outputs: Any) -> None:
        """Adds each field of an outputs dataclass as an output of the stack, except those that are None.

        Args:
            outputs: strings, tuples and mappings of strings.
        """
        for field in fields(outputs):
            value = getattr(outputs, field.name)
            if value is not None:
                TerraformOutput(self, field.name, value=list(value) if isinstance(value, tuple) else value)
