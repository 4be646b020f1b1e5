"""The credit service of the benchmark's ``user_credit``: it answers at once, and the same each time."""

from __future__ import annotations

import json
from collections.abc import Mapping

FUNCTION = f"{__name__}:answer"


def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, object]:
    """``POST /limits`` with an amount and a credit limit."""
    if (method, path) != ("POST", "/limits"):
        return 404, {"reason": "there is nothing here"}
    asked = json.loads(body)
    return 200, {"new_limit": new_limit(asked["credit_limit"], asked["amount"])}


def new_limit(credit_limit: float, amount: float) -> float:
    """What is left of a limit."""
    return credit_limit - amount / 8
