"""Rows of one input, counted wherever Penstock counts: while they are read, by key, as duplicates, and in windows.

The test knows the tasks before and after the first shuffle, and holds those after it.
"""

from penstock import Job, Tag, aggregate, deduplicate, observe_keys, tumbling
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.streams import Stream
from tests.jobs.spark.executors.held import Passage

# The folder of the passages' notes and lock, set by the test.
folder = ""


def build(job: Job) -> None:
    rows = observe_keys(job.source("a", "key STRING NOT NULL, at STRING, name STRING"), "keys", "key")
    once = deduplicate(_passing(rows, Passage(folder, "before")), ["name"], within="1h")
    job.write(aggregate(_passing(once, Passage(folder, "after", held=True)), tumbling("10s"), keys=["key"], n="count(*)"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)


def _passing(stream: Stream, passage: Passage) -> Stream:
    return stream.transform(lambda frame: with_event_time(frame.mapInArrow(passage, frame.schema)))
