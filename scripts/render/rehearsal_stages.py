"""What a rehearsal does with each stack, and what became of it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Stage(StrEnum):
    """What is done with each stack, in this order."""

    APPLY = "apply"
    PLAN = "second plan"
    DESTROY = "destroy"


class Outcome(StrEnum):
    """What became of a stage of a stack."""

    PASSED = "passed"
    FAILED = "failed"
    # A stack that it comes after has failed, or an earlier stage, or it was interrupted.
    LEFT_OUT = "left out"


class Case(BaseModel):
    """One stage of one stack.

    Args:
        stack: the stack's id.
        stage: the stage.
        outcome: what became of it.
        seconds: that it took.
        resources: number of resources that were created or destroyed.
        message: why it failed.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)

    stack: str
    stage: Stage
    outcome: Outcome
    seconds: float = 0.0
    resources: int = 0
    message: str = ""
