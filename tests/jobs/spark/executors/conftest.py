"""Both executors, for tests that need both, or that kill one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.scripts.local.spark_cluster import SparkCluster
from tests.jobs.spark.executors.held import until

_EXECUTORS = 2


@pytest.fixture
def executors(cluster: SparkCluster | None, session: SparkSession) -> Iterator[SparkCluster]:
    """The cluster with both executors ready; those that the test kills are replaced for the next one."""
    if cluster is None:
        pytest.skip("needs two executors: -m executors")
    _wait_for_all(session)
    yield cluster
    while len(cluster.workers) < _EXECUTORS:
        cluster.add_worker()
    _wait_for_all(session)


def _wait_for_all(session: SparkSession) -> None:
    # One more for the driver, which holds blocks too.
    until(lambda: session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == _EXECUTORS + 1, "all executors")
