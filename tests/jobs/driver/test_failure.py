"""From the failure of a query to the job's error."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.driver.errors import DiskFull, QueryFailed
from penstock.jobs.driver.failure import as_fault
from penstock.jobs.driver.root_cause import OwnCode

OWN = OwnCode((Path("/team/jobs"),))
# As Spark 4.3.0 words it, cut.
OF_AN_EXECUTOR = """Job aborted due to stage failure: Task 1 in stage 9.0 failed 4 times, most recent failure: Lost task 1.3 in stage 9.0 \
(TID 47) (10.244.2.3 executor 2): java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:3121)
Caused by: java.io.IOException: No space left on device
"""


def test_a_full_disk_is_an_error_of_its_own_that_names_the_executor_and_the_setting() -> None:
    error = as_fault(RuntimeError(OF_AN_EXECUTOR), "flights", OWN)
    assert isinstance(error, DiskFull)
    assert error.given == "executor 2 on 10.244.2.3: java.io.IOException: No space left on device"
    assert "executor.ephemeralStorage" in (error.fix or "")


@pytest.mark.parametrize("message", ["OSError: [Errno 28] No space left on device", "while it writes\nCaused by: No space left on device"])
def test_a_full_disk_without_an_executor_is_the_drivers(message: str) -> None:
    error = as_fault(RuntimeError(message), "flights", OWN)
    assert isinstance(error, DiskFull)
    assert "No space left on device" in (error.given or "")
    assert "driver.ephemeralStorage" in (error.fix or "")


def test_another_failure_is_none_of_a_disk() -> None:
    assert isinstance(as_fault(RuntimeError(OF_AN_EXECUTOR.replace("No space left", "Input/output error")), "flights", OWN), QueryFailed)
