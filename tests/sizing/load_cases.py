"""Reference results for loads, state, checkpoints and Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_CASES = json.loads((Path(__file__).parent / "data/load.json").read_text(encoding="utf-8"))["cases"]


def case(name: str) -> tuple[Any, Any]:
    """Input and expected result of one case."""
    result = next(entry for entry in _CASES if entry["id"] == name)
    return result["input"], result["expected"]
