"""What a savepoint has: ``<job folder>/savepoints/<name>/manifest.json``, written once and last. A folder without it is not a savepoint."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.storage.generation import Generation

FORMAT = 1
# A part of a URI and of a command line.
NAME_PATTERN = r"[a-z0-9][a-z0-9-]{0,62}"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class SavedObject(_Record):
    """An object of the checkpoint.

    Args:
        name: in the checkpoint.
        bytes: its size.
        sha256: of its content, in base64, as S3 has it.
    """

    name: str
    bytes: int = Field(ge=0)
    sha256: str


class SavedSource(_Record):
    """How far a source has been read.

    Args:
        topics: topic -> partition -> the next offset to read; empty of a source other than Kafka.
        offset: as the connector writes it, of any other source; None without one.
    """

    topics: dict[str, dict[int, int]] = Field(default_factory=dict)
    offset: str | None = None


class SavedQuery(_Record):
    """A query as of a micro-batch.

    Args:
        batch: the last committed micro-batch.
        at: its own timestamp.
        rows_in: records read since the checkpoint began.
        sources: in the order of the query's plan.
    """

    batch: int = Field(ge=0)
    at: datetime
    rows_in: int = Field(default=0, ge=0)
    sources: tuple[SavedSource, ...] = ()


class Savepoint(_Record):
    """The manifest.

    Args:
        format_version: of the savepoint.
        name: within the job.
        job: whose checkpoint it was.
        environment: of the job; empty if a driver made it, which does not know it.
        made: when, by the clock of who made it; for people only.
        by: who made it; for people only.
        checkpoint: where it was, ``s3a://bucket/folder``.
        generation: that ran on it; None of a job that an earlier release has run.
        queries: name -> query; the first one's name is empty.
        data: folder of the objects within the savepoint.
        objects: all of them, by name.
    """

    format_version: int = FORMAT
    name: str
    job: str
    environment: str
    made: datetime
    by: str | None = None
    checkpoint: str
    generation: Generation | None
    queries: dict[str, SavedQuery]
    data: str
    objects: tuple[SavedObject, ...]

    @property
    def bytes(self) -> int:
        """Of all objects."""
        return sum(one.bytes for one in self.objects)

    @property
    def whose(self) -> str:
        """The job, and its environment where that is known."""
        return f"job {self.job} of environment {self.environment}" if self.environment else f"job {self.job}"

    @property
    def topics(self) -> list[str]:
        """The topics that its queries have read, sorted."""
        return sorted({topic for query in self.queries.values() for source in query.sources for topic in source.topics})

    def by_name(self) -> Mapping[str, SavedObject]:
        """Name -> object."""
        return {one.name: one for one in self.objects}
