"""A Dockerfile parsed into its instructions, because building it takes minutes and a tool of its own."""

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
    """A build stage, from its FROM on.

    Args:
        base: image or stage, with the build arguments' defaults filled in.
        name: of the stage; None for an unnamed one.
        instructions: those after the FROM.
    """

    base: str
    name: str | None
    instructions: list[Instruction] = field(default_factory=list)

    def of(self, keyword: str) -> list[str]:
        """The texts of the instructions with a keyword."""
        return [instruction.text for instruction in self.instructions if instruction.keyword == keyword]


def stages(file: Path) -> list[Stage]:
    """The stages of a file."""
    defaults: dict[str, str] = {}
    parsed: list[Stage] = []
    for instruction in _instructions(file.read_text("utf-8")):
        if instruction.keyword == "FROM":
            base, _, name = instruction.text.partition(" AS ")
            parsed.append(Stage(re.sub(r"\$\{(\w+)\}", lambda argument: defaults[argument[1]], base), name or None))
        elif parsed:
            parsed[-1].instructions.append(instruction)
        else:
            assert instruction.keyword == "ARG", f"{instruction.keyword} before the first FROM"
            name, _, value = instruction.text.partition("=")
            defaults[name] = value
    return parsed


def _instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    split = [line.strip().split(None, 1) for line in joined.splitlines()]
    return [Instruction(keyword, re.sub(r"\s+", " ", rest)) for keyword, rest in split]
