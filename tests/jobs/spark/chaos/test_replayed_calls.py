"""A micro-batch that is run again, with calls before a step that keeps state: the whole of it, from the commit log to the answers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from pyspark.sql import functions as F

from penstock.jobs.blocks.calls import call
from penstock.jobs.stream.streams import TIME, Stream
from tests.jobs.spark.blocks import Input, row, run, same
from tests.jobs.spark.outside import Outside, calls
from tests.jobs.spark.running import CHECKPOINTS, Surroundings

SCHEMA = "user STRING, n INT"


def _sums(stream: Stream) -> Stream:
    """Tumbling sums of 10 s by Spark's own aggregation: a stateful step after the calls."""
    sums = stream.frame.groupBy(F.window(TIME, "10 seconds").alias("w")).agg(F.sum("asked").alias("asked"), F.count("*").alias("n"))
    return Stream(sums.select("asked", "n", F.lit(None).cast("timestamp").alias(TIME)), timed=True)


def test_a_micro_batch_that_runs_again_has_the_same_answers_without_a_call(surroundings: Surroundings) -> None:
    notes = str(surroundings.folder / "notes")
    name = f"replay-{uuid.uuid4().hex[:8]}"
    batches = [
        [row("1", user="a", n=1), row("2", user="b", n=2), row("3", user="down", n=3), row("30", user="c", n=4)],
        [row("30", user="d", n=5)],
    ]

    def build(streams: Mapping[str, Stream]) -> Stream:
        asked = call(
            streams["in"],
            Outside(notes),
            name="credit",
            key="concat_ws('-', user, n)",
            result="credit DOUBLE, asked INT",
            attempts=1,
            ordered=False,
        )
        return _sums(asked)

    first = run(surroundings, {"in": Input(SCHEMA, batches)}, build, name=name)
    same(first.rows, [{"n": 2, "asked": 2}])
    assert sorted(calls(notes)) == ["a-1", "b-2", "c-4", "d-5", "down-3"]
    assert _journals(surroundings, name) == {"1"}

    # As after a kill between the sink and the commit log.
    surroundings.s3.delete_object(Bucket=CHECKPOINTS, Key=f"{name}/1/commits/1")
    again = run(surroundings, {"in": Input(SCHEMA, [[row("60", user="e", n=6)]])}, build, name=name)
    assert [batch["batch"] for batch in again.events] == [1, 2, 3]
    # The first window once more, from the replay; then that of c and d, each asked once.
    assert again.batches == [[{"asked": 2, "n": 2}], [], [{"asked": 2, "n": 2}]]
    assert sorted(calls(notes)) == ["a-1", "b-2", "c-4", "d-5", "down-3", "e-6"]


def _journals(surroundings: Surroundings, name: str) -> set[str]:
    """The micro-batches that answers are kept of."""
    folder = f"{name}/1/penstock/calls/credit/"
    listed = surroundings.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=folder).get("Contents", [])
    return {item["Key"].removeprefix(folder).split("/")[0] for item in listed}
