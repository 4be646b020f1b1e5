"""Two drivers write files to one checkpoint: the first is suspended before each of its requests to S3 in turn, and wakes later."""

from __future__ import annotations

import itertools
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.jobs.sinks.errors import StagedPartGone
from penstock.jobs.sinks.files import Files, _Staged
from penstock.jobs.sinks.part_log import Manifest
from penstock.jobs.sinks.sink import FOREVER_MS, Batch
from penstock.jobs.spec import FileSink
from penstock.jobs.storage.checkpoint import RETAINED_BATCHES, Checkpoint
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

IDENTITY = "0123abcd"
# Rows of each micro-batch.
ROWS = 3


class Suspended:
    """A process that stops before one of its requests to S3, and all of its threads with it, until it is woken.

    Args:
        at: number of the request, from 1; 0 for never.
    """

    def __init__(self, at: int) -> None:
        self.stopped, self._go, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._at, self._calls = at, itertools.count(1)

    def watch(self, files: Files) -> Files:
        """Counts the requests of a writer from now on."""
        files.checkpoint._s3.meta.events.register("before-call.s3", self._before)
        return files

    def wake(self) -> None:
        """Lets it go on."""
        self._go.set()

    def _before(self, **_: Any) -> None:
        with self._lock:
            if not self._at or next(self._calls) < self._at:
                return
        self.stopped.set()
        assert self._go.wait(120)


class InProcess(Files):
    """The sink with its tasks in this process, so that a test of hundreds of interleavings needs no Spark."""

    def _records(self, rows: Any) -> Any:
        return rows

    def _shape(self, records: Any) -> str:
        return self.sink.format if self.sink.format == "json" else "parquet:0"

    def _stage(self, records: Any, batch: Batch) -> Any:
        return _Staged.of([row for out in self._writer(batch)([records]) for row in out.to_pylist()], self._shape(records))

    def _replayed(self, last: Manifest, records: Any, batch: Batch) -> Manifest:
        return last


def _rows(batch: int, format: str) -> pa.RecordBatch:
    ids = list(range(batch * ROWS, batch * ROWS + ROWS))
    common = {"_directory": [""] * ROWS, "_hash": ids}
    shown = {"_line": [f'{{"id":{number}}}' for number in ids]} if format == "json" else {"id": ids}
    return pa.RecordBatch.from_pydict(common | shown)


@dataclass
class Place:
    """A sink's place in the buckets, and a reader that moves the files away."""

    s3: S3Client
    format: str
    retained: int = RETAINED_BATCHES
    path: str = field(default_factory=lambda: f"zombie-{uuid.uuid4().hex[:8]}")
    now: list[int] = field(default_factory=lambda: [0])
    seen: Counter[int] = field(default_factory=Counter)

    def driver(self, interval: str) -> InProcess:
        """A writer of a driver of its own."""
        sink = FileSink.model_validate({"path": self.path, "bucketBy": "none", "format": self.format, "roll": {"interval": interval}})
        # A process has a client of its own, whose requests are counted.
        own = boto3.client("s3")
        checkpoint = Checkpoint(f"s3a://{CHECKPOINTS}/{self.path}/1", retained=self.retained, s3=own)
        driver = InProcess("out", sink, OUTPUT, IDENTITY, checkpoint, clock=lambda: self.now[0])
        vars(driver._publisher)["_s3"] = own
        return driver

    def write(self, files: Files, batch: int) -> None:
        """Writes a micro-batch; a second passes."""
        self.now[0] += 1_000
        files.publish(_rows(batch, self.format), Batch(batch, ROWS, self.now[0] - 1_000))

    def move(self) -> None:
        """Reads the files and takes them away, as a reader may once they are marked as published."""
        for item in self.s3.list_objects_v2(Bucket=OUTPUT, Prefix=f"{self.path}/").get("Contents", []):
            body = self.s3.get_object(Bucket=OUTPUT, Key=item["Key"])["Body"].read()
            if self.format == "json":
                self.seen.update(int(line[6:-1]) for line in body.splitlines())
            else:
                self.seen.update(pq.read_table(pa.BufferReader(body))["id"].to_pylist())
            self.s3.delete_object(Bucket=OUTPUT, Key=item["Key"])

    def left(self) -> list[str]:
        """Chunks and uploads that exist."""
        chunks = self.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=f"{self.path}/1/penstock/sinks/out/chunks/").get("Contents", [])
        uploads = self.s3.list_multipart_uploads(Bucket=OUTPUT, Prefix=f"{self.path}/").get("Uploads", [])
        return [*(item["Key"] for item in chunks), *(upload["Key"] for upload in uploads)]


Step = Callable[[Place, Files], None]

# What the first driver does while it is suspended: micro-batch 0 is written, its rows in an open file.
STEPS: dict[str, tuple[str, Step]] = {
    "closes a file between micro-batches": ("1h", lambda _, files: files.idle(FOREVER_MS)),
    "adds rows to an open file": ("1h", lambda place, files: place.write(files, 1)),
    "closes a file in a micro-batch": ("3s", lambda place, files: place.write(files, 1)),
    "writes whole files": ("1ms", lambda place, files: place.write(files, 1)),
    "starts": ("1h", lambda _, files: files.check()),
}


def _live(place: Place, files: Files) -> None:
    """What the second driver does meanwhile: it takes over, writes the micro-batch anew and others after it, and closes its files."""
    files.check()
    place.write(files, 1)
    files.idle(FOREVER_MS)
    place.write(files, 2)
    place.write(files, 3)
    files.idle(FOREVER_MS)


@dataclass
class Driver:
    """A step in a thread of its own, as a process of its own would run it."""

    run: Callable[[], None]
    suspended: Suspended
    error: list[BaseException] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> bool:
        """Runs until it is suspended, or to its end. Returns whether it is suspended."""
        threading.Thread(target=self._run, daemon=True).start()
        while not self.ended.wait(0.002):
            if self.suspended.stopped.is_set():
                return True
        return False

    def wake(self) -> None:
        """Runs on, to its end."""
        self.suspended.wake()
        assert self.ended.wait(120)

    def _run(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.error.append(error)
        finally:
            self.ended.set()


def _scenario(
    s3: S3Client, step: str, at: int, live_at: int, format: str = "json", retained: int = RETAINED_BATCHES
) -> tuple[bool, list[str]]:
    """The first driver is suspended before a request, wakes after the second one has gone on, or while that one is suspended itself.

    Returns:
        Whether the first driver has as many requests; what is wrong with the output.
    """
    place = Place(s3, format, retained)
    interval, do = STEPS[step]
    first = place.driver(interval)
    place.write(first, 0)
    if step == "starts":
        # The decision is written and nothing else.
        last = first._log.last()
        assert last is not None
        first._log.add(first._closing(last, FOREVER_MS))
        first = place.driver(interval)
    zombie = Driver(lambda: do(place, watched), Suspended(at))
    watched = zombie.suspended.watch(first)
    if not zombie.start():
        return False, []
    live = Driver(lambda: _live(place, second), Suspended(live_at))
    second = live.suspended.watch(place.driver(interval))
    if live.start():
        zombie.wake()
        live.wake()
    else:
        place.move()
        zombie.wake()
    place.move()
    faults = [f"the live driver failed: {error!r}" for error in live.error]
    # It goes on, as far as a lease lets it.
    try:
        place.write(watched, 1)
        place.write(watched, 2)
        watched.idle(FOREVER_MS)
    except StagedPartGone as error:
        faults.append(f"the zombie failed: {error!r}")
    place.move()
    last_one = place.driver(interval)
    last_one.check()
    last_one.idle(FOREVER_MS)
    place.move()
    faults.extend(f"the zombie failed: {error!r}" for error in zombie.error)
    expected = Counter(range(4 * ROWS))
    faults.extend(f"row {row}: {place.seen[row]} times" for row in expected | place.seen if place.seen[row] != expected[row])
    faults.extend(f"{key} is left" for key in place.left())
    return True, [f"{step}, {format}, {at}, {live_at}: {fault}" for fault in faults]


# Parquet makes the same requests as lines, except where a file is composed or written whole.
CASES = [
    *(("json", step) for step in STEPS),
    ("parquet", "closes a file between micro-batches"),
    ("parquet", "writes whole files"),
]


def hold_it_harms_nothing(s3: S3Client, step: str, format: str, requests: Iterable[int]) -> None:
    """Suspends a driver before each of these requests, so long that the entries of the log that it would find have expired."""
    faults: list[str] = []
    last = 0
    for last in requests:
        reached, more = _scenario(s3, step, last, 0, format, retained=2)
        faults.extend(more)
        if not reached:
            break
    assert faults == []
    assert last > 1, "the step makes requests"


@pytest.mark.parametrize(("format", "step"), CASES)
def test_a_driver_suspended_before_a_request_harms_nothing_when_it_wakes_after_another_has_gone_on(
    s3: S3Client, step: str, format: str
) -> None:
    """Every third request; all of them in the tier chaos."""
    hold_it_harms_nothing(s3, step, format, itertools.count(1, 3))


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_wakes_in_the_midst_of_another_ones_requests_harms_nothing(s3: S3Client, step: str) -> None:
    random_ = random.Random(step)
    faults = [fault for _ in range(2) for fault in _scenario(s3, step, random_.randrange(1, 12), random_.randrange(1, 50))[1]]
    assert faults == []
