"""Explanation of a number of a plan."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Explanation(BaseModel):
    """Explanation of a number of a plan.

    Args:
        number: path of the number in the plan's JSON.
        value: the number; None if the plan has none.
        rule: how it follows from the inputs.
        inputs: inputs of the rule.
        binding: the input that determines the number, if several could.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    number: str
    value: int | float | str | None
    rule: str
    inputs: dict[str, int | float | str]
    binding: str = ""
