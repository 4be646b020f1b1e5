"""A team's package called `jobs`, whose UDF Spark's Python workers import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.spark.running import Surroundings

pytestmark = pytest.mark.spark


def test_a_udf_of_a_package_called_jobs_runs_in_a_python_worker(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    # The folder of the package, as a team works in it; the workers have it on their path already.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.chdir(Path(__file__).parent)
    job = surroundings.job("jobs.clicks", sources={"clicks": 1})
    with job.running() as running:
        job.feed("clicks", {"user": "ann", "at": "2025-04-05T12:00:00Z", "page": "/cart/2"})
        running.until_read({"clicks": [1]})
    assert job.rows() == [{"section": "cart", "user": "ann"}]
