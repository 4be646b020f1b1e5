"""Why a number of a plan is what it is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Explanation(BaseModel):
    """Why a number of the plan is what it is.

    Args:
        number: its path in the plan's JSON.
        value: the number; None where the plan has none.
        rule: how it follows from the inputs.
        inputs: what it follows from.
        binding: the input that decides, where one of several does.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    number: str
    value: int | float | str | None
    rule: str
    inputs: dict[str, int | float | str]
    binding: str = ""
