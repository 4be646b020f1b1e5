"""Part files that stay open across micro-batches: their chunks, and when they are closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from penstock.jobs.spec import Roll


class Chunk(BaseModel):
    """Rows of one directory that a task has staged as a separate object.

    Args:
        name: name of the object among the sink's chunks.
        rows: number of rows.
        bytes: size of the object.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    rows: int
    bytes: int


class OpenPart(BaseModel):
    """An open part file.

    Args:
        directory: directory below the sink's path; may be empty.
        shape: format and columns; chunks of another shape can't be added.
        opened_ms: time of the micro-batch that opened it, in epoch milliseconds.
        touched_ms: wall-clock time when it last got rows, in epoch milliseconds.
        chunks: its chunks in the order of arrival.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    directory: str
    shape: str
    opened_ms: int
    touched_ms: int
    chunks: tuple[Chunk, ...]

    @property
    def bytes(self) -> int:
        """Total size of its chunks."""
        return sum(chunk.bytes for chunk in self.chunks)

    def due(self, roll: Roll, now_ms: int) -> bool:
        """Whether the part is to be closed, by its size, its age, or its inactivity."""
        old = now_ms - self.opened_ms >= roll.interval or now_ms - self.touched_ms >= roll.inactivity
        return old or self.bytes >= roll.size


def extended(
    parts: Sequence[OpenPart], chunks: Iterable[tuple[str, Chunk]], roll: Roll, shape: str, began_ms: int, now_ms: int
) -> list[OpenPart]:
    """Adds the chunks of a micro-batch to the open parts: those of a directory go to its open part until it is full, then to a new one.

    Args:
        parts: open parts.
        chunks: chunks, each with its directory.
        roll: limits of a part.
        shape: shape of the chunks.
        began_ms: time of the micro-batch in epoch milliseconds.
        now_ms: wall-clock time in epoch milliseconds.

    Returns:
        All parts, including those that are due now.
    """
    grown = list(parts)
    places = {part.directory: place for place, part in enumerate(grown) if part.shape == shape and part.bytes < roll.size}
    for directory, chunk in chunks:
        if directory not in places:
            places[directory] = len(grown)
            grown.append(OpenPart(directory=directory, shape=shape, opened_ms=began_ms, touched_ms=now_ms, chunks=()))
        part = grown[places[directory]]
        grown[places[directory]] = part.model_copy(update={"chunks": (*part.chunks, chunk), "touched_ms": now_ms})
        if grown[places[directory]].bytes >= roll.size:
            del places[directory]
    return grown
