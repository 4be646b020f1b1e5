"""``python -m penstock.jobs.spec.schema > jobs/spec.schema.json``: the JSON Schema of the job spec, for editors.

A test compares the file with the models.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic.alias_generators import to_camel

from penstock.jobs.spec import json_schema


def schema() -> dict[str, Any]:
    """The schema of the document as users write it.

    Pydantic's own schema has the defaults in the units of the models (1000 for one core), which an editor would suggest; it accepts any
    name where only some are allowed; and it includes the whole docstring of a model instead of a sentence per field.
    """
    document: dict[str, Any] = _as_written(json_schema())
    for part in (document, *document.get("$defs", {}).values()):
        _describe(part)
    return document


def rendered() -> str:
    """The schema as committed."""
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


def _describe(part: dict[str, Any]) -> None:
    """Moves the Args of a model's docstring to its fields' descriptions."""
    summary, _, arguments = str(part.get("description", "")).partition("\n\nArgs:\n")
    if summary:
        part["description"] = _one_line(summary)
    for name, text in re.findall(r"^ {4}(\w+): (.+?)(?=^ {4}\w+: |\Z)", arguments, re.MULTILINE | re.DOTALL):
        field = part.get("properties", {}).get(to_camel(name))
        if field is not None:
            field["description"] = _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


if __name__ == "__main__":
    print(rendered(), end="")
