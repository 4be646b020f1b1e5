"""Reads a job spec from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.jobs.document import DumpedDocument, parse_text, read
from penstock.jobs.spec.contradictions import contradictions
from penstock.jobs.spec.job import StreamingJob
from penstock.sizing.errors import Place, raise_all


class ParallelismOverride(BaseModel):
    """The parallelism that an environment sets for a job.

    Args:
        value: the number.
        at: its place in the environment's file; None: an environment built by a program.
        path: the field there.
        replaced: what the spec has in its place: ``parallelism: 10`` or ``load``.
    """

    model_config = ConfigDict(frozen=True)

    value: int
    at: Place | None = None
    path: str = "parallelism"
    replaced: str = ""


class SpecFile(BaseModel):
    """A spec with the document that it was read from, so that later errors have a line.

    Its JSON form consists of the path, the document, from which the job is read again, and the override.

    Args:
        path: of the file.
        document: as it was read, with the number of the override in place of its own.
        job: the document as a model.
        override: the parallelism of an environment; None: the spec's own holds. See `penstock.jobs.spec.overriding`.
    """

    model_config = ConfigDict(frozen=True)

    path: Path
    document: DumpedDocument
    job: Annotated[StreamingJob, Field(exclude=True)]
    override: ParallelismOverride | None = None

    @property
    def overriding_parallelism(self) -> int | None:
        """The number of the override."""
        return None if self.override is None else self.override.value

    @model_validator(mode="before")
    @classmethod
    def _of_document(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "job" in given:
            return given
        dumped = given["document"]
        document = parse_text(dumped["text"], dumped["file"])
        return {**given, "document": document, "job": document.parse(StreamingJob)}


def load(path: Path) -> SpecFile:
    """Reads a job spec.

    Raises:
        PenstockError: SPEC-001 to SPEC-008, SPEC-011 and SPEC-015; several are raised as `Faults`.
    """
    document = read(path)
    job = document.parse(StreamingJob)
    raise_all(contradictions(document, job))
    return SpecFile(path=path, document=document, job=job)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document, for editors."""
    schema = StreamingJob.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Penstock streaming job", **schema}
