"""A Dockerfile as its instructions. It can't be built without Docker; what it says can be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined.

    Args:
        keyword: in capitals.
        text: what follows it, without comments.
    """

    keyword: str
    text: str


@dataclass(frozen=True)
class Stage:
    """What begins with a FROM.

    Args:
        base: image or stage, with the build arguments' defaults filled in.
        name: of the stage; None where it has none.
        instructions: those after the FROM.
    """

    base: str
    name: str | None
    instructions: list[Instruction] = field(default_factory=list)

    def of(self, keyword: str) -> list[str]:
        """The texts of one keyword's instructions."""
        return [instruction.text for instruction in self.instructions if instruction.keyword == keyword]


def stages(file: Path) -> list[Stage]:
    """The stages of a file."""
    defaults: dict[str, str] = {}
    found: list[Stage] = []
    for instruction in _instructions(file.read_text("utf-8")):
        if instruction.keyword == "FROM":
            base, _, name = instruction.text.partition(" AS ")
            found.append(Stage(re.sub(r"\$\{(\w+)\}", lambda argument: defaults[argument[1]], base), name or None))
        elif found:
            found[-1].instructions.append(instruction)
        else:
            assert instruction.keyword == "ARG", f"{instruction.keyword} before the first FROM"
            name, _, value = instruction.text.partition("=")
            defaults[name] = value
    return found


def _instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    split = [line.strip().split(None, 1) for line in joined.splitlines()]
    return [Instruction(keyword, re.sub(r"\s+", " ", rest)) for keyword, rest in split]
