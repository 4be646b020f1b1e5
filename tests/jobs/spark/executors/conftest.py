"""Both executors, for tests that need both, or that kill one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.scripts.local.spark_cluster import SparkCluster
from tests.jobs.spark.executors.held import until

_EXECUTORS = 2


@pytest.fixture
def executors(cluster: SparkCluster | None, session: SparkSession) -> SparkCluster:
    """The cluster with both executors ready, whatever an earlier test did to them."""
    if cluster is None:
        pytest.skip("needs two executors: -m executors")
    while len(cluster.workers) < _EXECUTORS:
        cluster.add_worker()
    # One more for the driver, which holds blocks too.
    until(lambda: session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 1 + _EXECUTORS, "all executors")
    return cluster
