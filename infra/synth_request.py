"""What a command that has planned an environment hands to the process that synthesizes its stacks: one JSON document.

cdktf's constructs run in Node.js, so they stay in a process of their own. It gets the environment and the plans of its jobs, each with the
document that it was read from, and plans nothing again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.jobs.document import DumpedDocument


class SynthRequest(BaseModel):
    """A request to synthesize stacks.

    Args:
        schema_version: of this document; the two processes are of one version of Penstock.
        environment: whose stacks they are.
        document: that the environment was read from; None where a program made it.
        plans: of its jobs, feasible.
        stacks: the names of those that are wanted; what they take of others brings these along. None named: all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    environment: Environment
    document: DumpedDocument | None = None
    plans: EnvironmentPlans
    stacks: tuple[str, ...] = ()

    def write(self, file: Path) -> None:
        """Writes the request; `read` reads it back."""
        file.write_text(self.model_dump_json(by_alias=True), encoding="utf-8")


def request(environment: Environment, plans: EnvironmentPlans, stacks: tuple[str, ...] = ()) -> SynthRequest:
    """A request for an environment's stacks.

    Args:
        environment: whose stacks they are; its document goes with it.
        plans: of its jobs.
        stacks: the names of those that are wanted; none: all.
    """
    return SynthRequest(environment=environment, document=environment.document, plans=plans, stacks=stacks)


def read(file: Path) -> SynthRequest:
    """The request of a file that `SynthRequest.write` wrote, its environment with its document."""
    found = SynthRequest.model_validate_json(file.read_text(encoding="utf-8"))
    return found.model_copy(update={"environment": found.environment.of_document(found.document)})
