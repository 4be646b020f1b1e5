"""Reads a job spec from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.jobs.document import DumpedDocument, parse_text, read
from penstock.jobs.spec.contradictions import contradictions
from penstock.jobs.spec.job import StreamingJob
from penstock.sizing.errors import raise_all


class SpecFile(BaseModel):
    """A spec with the document that it was read from, so that later errors have a line.

    Its JSON form consists of the path and the document, from which the job is read again.
    """

    model_config = ConfigDict(frozen=True)

    path: Path
    document: DumpedDocument
    job: Annotated[StreamingJob, Field(exclude=True)]

    @model_validator(mode="before")
    @classmethod
    def _of_document(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "job" in given:
            return given
        dumped = given["document"]
        document = parse_text(dumped["text"], dumped["file"])
        return {"path": given["path"], "document": document, "job": document.parse(StreamingJob)}


def load(path: Path) -> SpecFile:
    """Reads a job spec.

    Raises:
        PenstockError: SPEC-001 to SPEC-008 and SPEC-011; several are raised as `Faults`.
    """
    document = read(path)
    job = document.parse(StreamingJob)
    raise_all(contradictions(document, job))
    return SpecFile(path=path, document=document, job=job)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document, for editors."""
    schema = StreamingJob.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Penstock streaming job", **schema}
