"""A stack whose side is AWS."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from cdktf import TerraformOutput, TerraformStack
from constructs import Construct

from penstock.infra.constructs.provider import provider
from penstock.infra.environment import Environment
from penstock.infra.state import keep_state


class AwsStack(TerraformStack):
    """A stack with a state of its own and the AWS provider.

    Args:
        scope: the app.
        id: of the stack.
        environment: whose it is.
    """

    def __init__(self, scope: Construct, id: str, environment: Environment) -> None:
        super().__init__(scope, id)
        self.environment = environment
        keep_state(self, environment)
        provider(self, environment)

    def export(self, outputs: Any) -> None:
        """Makes each field of an outputs dataclass an output of the stack; what is None is left out.

        Args:
            outputs: of strings, tuples and mappings of strings.
        """
        for field in fields(outputs):
            value = getattr(outputs, field.name)
            if value is not None:
                TerraformOutput(self, field.name, value=list(value) if isinstance(value, tuple) else value)
