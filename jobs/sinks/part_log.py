"""What a file sink has decided, one decision after another: a log in the checkpoint of which each entry is written once.

An entry says which part files are to be published and which stay open. Nobody writes entry ``n + 1`` who has not seen entry ``n`` and
published what it names: so however many drivers believe that they are the one, what they decide is one chain, and only its last entry can
be half done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from jobs.checkpoint import RETAINED_BATCHES, Checkpoint
from jobs.sinks.open_parts import Chunk, OpenPart
from jobs.sinks.parts import StagedPart


class ComposedPart(BaseModel):
    """A part file that is made of chunks.

    Args:
        key: of the object in the bucket.
        token: metadata of the object, by which it is known again once it is published.
        shape: format and columns of the chunks.
        chunks: what it is made of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    token: str
    shape: str
    chunks: tuple[Chunk, ...]


class Manifest(BaseModel):
    """One decision about a sink's files.

    Args:
        number: of the decision, from 0.
        batch: Spark's number of the last micro-batch whose rows are in the files.
        rows: rows of that micro-batch.
        digest: sum of their hashes modulo 2^64, as a signed number.
        parts: uploads to complete.
        composed: files to make of chunks.
        open: parts that stay open.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    batch: int
    rows: int
    digest: int
    parts: tuple[StagedPart, ...] = ()
    composed: tuple[ComposedPart, ...] = ()
    open: tuple[OpenPart, ...] = ()


@dataclass
class PartLog:
    """The log of one sink.

    Args:
        checkpoint: where it lies.
        sink: name of the sink.
    """

    checkpoint: Checkpoint
    sink: str
    _last: Manifest | None = field(default=None)
    _looked: bool = field(default=False)
    _finished: int = field(default=-1)

    def last(self) -> Manifest | None:
        """The last decision, by what this log has read or written; None where there is none."""
        if not self._looked:
            names = self.checkpoint.names(self._folder)
            number = max((int(name.removesuffix(".json")) for name in names if name.endswith(".json")), default=-1)
            self._last, self._looked = self._read(number), True
            if f"{number:010d}.done" in names:
                self._finished = number
        return self._last

    def add(self, manifest: Manifest) -> bool:
        """Writes the next decision.

        Returns:
            False where somebody else has written one of that number: `last` is read anew.
        """
        if not self.checkpoint.put_once(self._name(manifest.number), manifest.model_dump_json()):
            self._looked = False
            return False
        self._last, self._looked = manifest, True
        self.checkpoint.delete(self._name(manifest.number - RETAINED_BATCHES))
        return True

    def rest(self) -> None:
        """Notes, at the end of a run, that all is published: the next run need not look for files that a reader may have taken away."""
        if self._last is not None and self.finished(self._last):
            self.checkpoint.put_once(self._name(self._last.number).replace(".json", ".done"), "")

    def finished(self, manifest: Manifest) -> bool:
        """Whether what a decision names is published, by what this log has been told."""
        return manifest.number <= self._finished

    def finish(self, manifest: Manifest) -> None:
        """Keeps in mind that what a decision names is published."""
        self._finished = max(self._finished, manifest.number)

    def of_batch(self, batch: int) -> Manifest | None:
        """The last decision that had a micro-batch as its last; None where it is not there any more."""
        manifest = self.last()
        while manifest is not None and manifest.batch > batch:
            manifest = self._read(manifest.number - 1)
        return manifest if manifest is not None and manifest.batch == batch else None

    def _read(self, number: int) -> Manifest | None:
        text = self.checkpoint.get(self._name(number)) if number >= 0 else None
        return None if text is None else Manifest.model_validate_json(text)

    @property
    def _folder(self) -> str:
        return f"sinks/{self.sink}/log/"

    def _name(self, number: int) -> str:
        return f"{self._folder}{number:010d}.json"
