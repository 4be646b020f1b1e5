"""Checkpoints that earlier releases have written go on in this one: with their state, and without a row lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.spark.recorded_checkpoints import AFTER, BEFORE, FOLDER, assert_every_row, every_state, restore, run
from tests.jobs.spark.running import Surroundings

RECORDINGS = sorted(FOLDER.glob("*.tar.gz"))
A_PAIRS = {"a1": ["b1", "b1", "b4"]}


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
    assert_every_row(job)
