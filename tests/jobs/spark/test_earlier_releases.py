"""Checkpoints that earlier releases have written go on in this one: with their state, and without a row lost or doubled."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.jobs.spark.recorded_checkpoints import AFTER, BEFORE, FOLDER, every_state, restore, run
from tests.jobs.spark.running import Surroundings

RECORDINGS = sorted(FOLDER.glob("*.tar.gz"))
A_PAIRS = {"a1": ["b1", "b1", "b4"]}

# Each name of the left side with each of the right side whose rows have its key and lie within a minute, once for each such row.
PAIRS = Counter(
    [(a, b) for a in ("a1", "a3", "a6", "a7") for b in ("b1", "b1", "b1", "b4")]
    + [("a2", "b5"), ("a4", "b5"), ("a5", "b2")]
    + [(a, b) for a in ("end", "past") for b in ("end", "past")]
)


def test_there_are_recordings() -> None:
    assert [archive.name for archive in RECORDINGS] == ["before-generations.tar.gz"]


@pytest.mark.parametrize("archive", RECORDINGS, ids=lambda archive: archive.name.partition(".")[0])
def test_a_checkpoint_of_an_earlier_release_goes_on(surroundings: Surroundings, archive: Path) -> None:
    job = every_state(surroundings)
    restore(surroundings.s3, archive)
    for batch in BEFORE:
        for source, records in batch.items():
            job.feed(source, *records)
    run(job, AFTER, read={source: sum(len(batch[source]) for batch in BEFORE) for source in ("a", "b")})
    assert [(row["key"], row["n"]) for row in job.rows()] == [("k", 1), ("k", 1), ("k", 2), ("l", 1), ("l", 1), ("m", 1)]
    assert Counter((row["left"], row["right"]) for row in job.rows_of("pairs")) == PAIRS
    names = [("k", "a1"), ("k", "a3"), ("k", "a6a7"), ("l", "a2"), ("l", "a4"), ("m", "a5")]
    assert [(row["key"], row["names"]) for row in job.rows_of("names")] == names
    assert [row["name"] for row in job.rows_of("once")] == ["b1", "b2", "b3", "b4", "b5", "end", "past"]
    # By the watermark of the recorded micro-batches.
    assert [json.loads(record["value"])["name"] for record in job.side_outputs("late")] == ["late"]
