"""Malformed records do not stop a job unless the spec sets a limit."""

from __future__ import annotations

import pytest

from penstock.jobs.stream.errors import QuarantineLimitReached
from penstock.jobs.stream.streams import Tag
from tests.jobs.spark.running import Surroundings

GOOD = {"key": "k", "at": "2025-04-05T12:30:00Z", "name": "good"}


def test_too_many_bad_records_stop_the_job_with_their_reasons_and_nothing_is_written(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1}, quarantine={"share": 0.5, "records": 2})
    job.feed("a", GOOD, b"a single one")
    with job.running() as running:
        running.until_read({"a": [2]})
        job.feed("a", GOOD, b"no", b"no", b'{"at": "2025-04-05T12:30:00Z"}')
        with pytest.raises(QuarantineLimitReached) as raised:
            running.wait("never")
    first = f"as {job.topics['a']}-0"
    bad_json, no_key = "the value is not JSON of the source's schema", "key is missing"
    assert raised.value.given == f"3 of 4 records (75.0%): {bad_json} (2, {first}-3); {no_key} (1, {first}-5)"
    assert (len(job.rows()), len(job.side_outputs("errors"))) == (1, 1)

    # The micro-batch was not committed: with a higher limit it runs again, and no row is lost or duplicated.
    job.edit(lambda spec: spec["quarantine"].update(share=0.8))
    with job.running() as running:
        (batch, *_) = running.until_read({"a": [6]})
    assert batch["totalTags"] == {Tag.DATA: 2, Tag.QUARANTINED: 4}
    assert (len(job.rows()), len(job.side_outputs("errors"))) == (2, 4)
