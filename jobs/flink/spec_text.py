"""Formats a job spec as YAML with comments, for generated specs that a person edits."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

# The field of notes that the spec has no field for.
LEFTOVER = "leftover"

_FIELDS = ("app", "parallelism", "upgradeMode", "executor", "driver", "sparkConf", "trigger", "progressTimeout", "restart", "state")
_WIDTH = 120
# Texts that YAML 1.1 resolves to a boolean, null or a number; the texts of a spec are names and quantities.
_NOT_TEXT = r"y|n|yes|no|on|off|true|false|null|[-+.0-9][0-9._xobe+-]*"


class Note(BaseModel):
    """A note on a field of the document that a spec is generated from.

    Args:
        field: field of the spec that it belongs to (``trigger``), or `LEFTOVER` if the spec has none.
        path: path of the field in that document, empty for a missing field.
        line: line of the field in that document.
        given: its value as JSON.
        text: text of the note.
        file: of that document, where it is another one than that of the job.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    field: str
    path: str = ""
    line: int | None = None
    given: str = ""
    text: str
    file: str = ""


def spec_text(head: str, document: dict[str, Any], notes: Sequence[Note]) -> str:
    """Formats a spec as a person would write it, with the notes of each field above it.

    Args:
        head: the first comment.
        document: the spec as plain data, whose texts are only names and quantities.
        notes: comments; those of `LEFTOVER` are written at the end.
    """
    spec = document["spec"]
    lines = [*_comment(head, ""), *_comments(notes, "metadata", "")]
    lines += [f"{field}: {_flow(document[field])}" for field in ("apiVersion", "kind", "metadata")] + ["spec:"]
    for field in _FIELDS:
        lines += _comments(notes, field, "  ")
        if field in spec:
            lines.append(f"  {field}: {_flow(spec[field])}")
    left = [note for note in notes if note.field == LEFTOVER]
    if left:
        lines += _comment("Without a counterpart in a job spec, with line numbers:", "")
        lines += [line for note in left for line in _comment(f"- {_said(note)}", "")]
    return "\n".join(lines) + "\n"


def _comments(notes: Sequence[Note], field: str, indent: str) -> list[str]:
    return [line for note in notes if note.field == field for line in _comment(_said(note), indent)]


def _said(note: Note) -> str:
    line = f"{note.file}:{note.line}" if note.file else f"line {note.line}"
    where = f"{line}, {note.path}" if note.line else note.path
    given = f" = {note.given}" if note.given and note.path else ""
    return f"{where}{given}: {note.text}" if where else note.text


def _comment(text: str, indent: str) -> list[str]:
    printable = "".join(char if char.isprintable() else "?" for char in text)
    hanging = "#   " if printable.startswith("- ") else "# "
    return textwrap.wrap(
        printable, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=indent + hanging, break_long_words=False, break_on_hyphens=False
    )


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(entry)}" for key, entry in value.items()) + "}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """A value that YAML reads back unchanged: a text that it would resolve to another type, such as the name ``on``, is quoted."""
    if isinstance(value, bool):
        return str(value).lower()
    plain = not isinstance(value, str) or (re.fullmatch(r"[A-Za-z0-9._/-]+", value) and not re.fullmatch(_NOT_TEXT, value, re.IGNORECASE))
    return str(value) if plain else f'"{value}"'


def cores_text(millicores: int) -> Any:
    """Cores in the format of a spec: a number, or millicores if that is shorter."""
    if millicores % 1000 == 0:
        return millicores // 1000
    return millicores / 1000 if millicores % 100 == 0 else f"{millicores}m"


def duration_text(duration_ms: int) -> str:
    """A duration in the format of a spec, in the largest unit that it is a multiple of."""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if duration_ms % size == 0:
            return f"{duration_ms // size}{unit}"
    return f"{duration_ms}ms"
