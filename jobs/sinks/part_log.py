"""Log of a file sink's decisions in the checkpoint; each entry is written once.

An entry lists the part files to publish and those that stay open. An entry ``n + 1`` is only written by a driver that has read entry
``n`` and published its files. However many drivers consider themselves active, their decisions therefore form one chain, and only its
last entry can be incomplete.

In addition to the log, a mark names the last entry whose files are all published. From then on these files are not looked up again, and
a reader may move them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from penstock.jobs.sinks import manifests
from penstock.jobs.sinks.open_parts import Chunk, OpenPart
from penstock.jobs.sinks.parts import StagedPart
from penstock.jobs.storage.checkpoint import Checkpoint


class ComposedPart(BaseModel):
    """A part file of a manifest that an earlier version wrote: it is composed of its chunks after the decision.

    Args:
        key: key of the object in the bucket.
        token: metadata of the object that identifies it once it is published.
        shape: format and columns of the chunks.
        chunks: chunks that it is composed of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    token: str
    shape: str
    chunks: tuple[Chunk, ...]


class Manifest(BaseModel):
    """One decision about a sink's files.

    Args:
        number: number of the decision, from 0.
        batch: Spark's number of the last micro-batch whose rows are in the files.
        rows: number of rows of that micro-batch.
        digest: sum of their hashes modulo 2^64, as a signed number.
        parts: uploads to complete.
        used: names of the chunks that these uploads were composed of.
        composed: files to compose from chunks, only in manifests of earlier versions.
        open: parts that stay open.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    batch: int
    rows: int
    digest: int
    parts: tuple[StagedPart, ...] = ()
    used: tuple[str, ...] = ()
    composed: tuple[ComposedPart, ...] = ()
    open: tuple[OpenPart, ...] = ()

    def without(self, names: Collection[str]) -> Manifest:
        """The same without some chunks: an open part that has no others is closed."""
        left = (part.model_copy(update={"chunks": tuple(one for one in part.chunks if one.name not in names)}) for part in self.open)
        return self.model_copy(update={"open": tuple(part for part in left if part.chunks)})


@dataclass
class PartLog:
    """Log of one sink.

    Args:
        checkpoint: checkpoint with the log.
        sink: name of the sink.
    """

    checkpoint: Checkpoint
    sink: str
    _last: Manifest | None = field(default=None)
    _looked: bool = field(default=False)
    _published: int = field(default=-1)
    _finished: int = field(default=-1)
    _marks: list[str] = field(default_factory=list)

    def last(self) -> Manifest | None:
        """The last decision that this log has read or written; None if it has none. Raises JOB-008."""
        if not self._looked:
            names = self.checkpoint.names(self._folder)
            number = _greatest(names)
            self._last, self._looked = self._read(number), True
            self._marks = [f"{self._marks_folder}{name}" for name in self.checkpoint.names(self._marks_folder)]
            # The second is the mark by which earlier versions ended a run.
            if self._mark(number) in self._marks or f"{number:010d}.done" in names:
                self._published = number
        return self._last

    def add(self, manifest: Manifest) -> bool:
        """Writes the next decision.

        Entries expire, so the number may be free because it existed long ago: for a driver that was suspended meanwhile. A later entry
        proves that.

        Returns:
            False if another driver has written a decision with that number: `last` is read again.
        """
        name = self._name(manifest.number)
        written = self.checkpoint.put_once(name, manifest.model_dump_json())
        newest = self._newest() if written else manifest.number
        if newest >= manifest.number + self.checkpoint.retained:
            self.checkpoint.delete(name)
        if not written or newest > manifest.number:
            self._looked = False
            return False
        self._last, self._looked = manifest, True
        self.checkpoint.delete_expired(self._name, manifest.number - self.checkpoint.retained)
        return True

    def followed(self, manifest: Manifest | None) -> bool:
        """Whether another driver has written a later decision, so that this one is completed; `last` is read again."""
        self._looked = False
        return self._newest() > (manifest.number if manifest else -1)

    def marked(self, manifest: Manifest) -> bool:
        """Whether any driver has marked a decision as published by now."""
        return self._mark(manifest.number).rpartition("/")[2] in self.checkpoint.names(self._marks_folder)

    def published(self, manifest: Manifest) -> bool:
        """Whether the files of a decision are known to be published: it has none, or this log or an earlier one has marked it."""
        return manifest.number <= self._published or not (manifest.parts or manifest.composed)

    def publish(self, manifest: Manifest) -> None:
        """Records that the files of a decision are published, and deletes the marks of earlier decisions."""
        mark = self._mark(manifest.number)
        self.checkpoint.put_once(mark, "")
        self._published = max(self._published, manifest.number)
        for old in self._marks:
            if old < mark:
                self.checkpoint.delete(old)
        self._marks = [mark]

    def finished(self, manifest: Manifest) -> bool:
        """Whether a decision is completed, as far as this log has recorded."""
        return manifest.number <= self._finished

    @property
    def has_finished(self) -> bool:
        """Whether this log has recorded the completion of any decision."""
        return self._finished >= 0

    def finish(self, manifest: Manifest) -> None:
        """Records in memory that a decision is completed."""
        self._finished = max(self._finished, manifest.number)

    def of_batch(self, batch: int) -> Manifest | None:
        """The last decision whose last micro-batch is the given one; None if it no longer exists."""
        manifest = self.last()
        while manifest is not None and manifest.batch > batch:
            manifest = self._read(manifest.number - 1)
        return manifest if manifest is not None and manifest.batch == batch else None

    def published_after(self, number: int) -> Iterator[Manifest]:
        """The decisions after one, of those that still exist, whose files are known to be published. Raises JOB-008."""
        last = self.last()
        for later in range(number + 1, last.number + 1 if last else 0):
            manifest = self._read(later)
            # Only the last one can be incomplete.
            if manifest is not None and (last is None or later < last.number or self.published(manifest)):
                yield manifest

    def _newest(self) -> int:
        return _greatest(self.checkpoint.names(self._folder))

    def _read(self, number: int) -> Manifest | None:
        return manifests.read(self.checkpoint, self._name(number), Manifest) if number >= 0 else None

    @property
    def _folder(self) -> str:
        return f"sinks/{self.sink}/log/"

    @property
    def _marks_folder(self) -> str:
        return f"sinks/{self.sink}/published/"

    def _name(self, number: int) -> str:
        return f"{self._folder}{number:010d}.json"

    def _mark(self, number: int) -> str:
        return f"{self._marks_folder}{number:010d}"


def _greatest(names: Iterable[str]) -> int:
    """The number of the last entry; -1 if there is none."""
    return max((int(name.removesuffix(".json")) for name in names if name.endswith(".json")), default=-1)
