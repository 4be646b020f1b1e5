"""``python -m jobs.spec_schema > jobs/spec.schema.json``: the JSON Schema of the job spec, for editors; a test holds the two together."""

from __future__ import annotations

import json
from typing import Any

from jobs.spec import json_schema


def schema() -> dict[str, Any]:
    """The schema of the document as a person writes it.

    Pydantic's own has the defaults in the units of the models (1000 for one core), which an editor would offer as they are; and it lets
    any name pass where only some are allowed.
    """
    document: dict[str, Any] = _as_written(json_schema())
    return document


def rendered() -> str:
    """The schema as the committed file has it."""
    return json.dumps(schema(), indent=2) + "\n"


def _as_written(part: Any) -> Any:
    if isinstance(part, list):
        return [_as_written(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _as_written(value) for key, value in part.items() if key != "default" or _is_as_written(value, part)}
    return {**kept, "additionalProperties": False} if "patternProperties" in part else kept


def _is_as_written(default: Any, part: dict[str, Any]) -> bool:
    types = {choice.get("type") for choice in part.get("anyOf", [part])}
    return isinstance(default, str | bool) or (isinstance(default, int) and "integer" in types)


if __name__ == "__main__":
    print(rendered(), end="")
