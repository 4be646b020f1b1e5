"""The request of a command to the process that synthesizes an environment's stacks, as one JSON document.

cdktf's constructs run in Node.js, so synthesis stays in a separate process. The request carries the environment and the plans of its jobs,
each with its source document: nothing is planned twice, and later errors name file and line.
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
        schema_version: of this document; both processes run the same version of Penstock.
        environment: the environment to synthesize.
        document: source document of the environment; None for an environment built by a program.
        plans: feasible plans of its jobs.
        stacks: names of the requested stacks, whose dependencies are included; empty: all stacks.
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
    """Builds a request; the environment's document is included.

    Args:
        environment: the environment to synthesize.
        plans: plans of its jobs.
        stacks: names of the requested stacks; empty: all.
    """
    return SynthRequest(environment=environment, document=environment.document, plans=plans, stacks=stacks)


def read(file: Path) -> SynthRequest:
    """Reads a request written by `SynthRequest.write`; the environment has its document again."""
    stored = SynthRequest.model_validate_json(file.read_text(encoding="utf-8"))
    return stored.model_copy(update={"environment": stored.environment.of_document(stored.document)})
