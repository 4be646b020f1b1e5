"""How the process of a driver ends: one last event, the termination message of its container, and an exit code."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Mapping

from penstock.jobs.driver.errors import NoProgress, QueryFailed
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.pod import leave_message
from penstock.jobs.driver.spark import DriverSpark
from penstock.jobs.stream.task_errors import first_line
from penstock.sizing.errors import PenstockError

# Source: Spark 4.3.0, SparkContext.assertNotStopped.
_STOPPED = "Cannot call methods on a stopped SparkContext"


class Ending:
    """The end of a driver's process: whoever calls first decides the last event and the exit code.

    Args:
        emit: reports an event.
        spark: of the driver.
    """

    def __init__(self, emit: Emit, spark: DriverSpark) -> None:
        self._emit = emit
        self._spark = spark
        self._first = threading.Lock()

    def stopped(self) -> int:
        """After a stop, or the end of a bounded run. Returns the exit code."""
        self._last("stopped", {})
        return 0

    def failed(self, error: Exception) -> int:
        """After a failure, with its traceback in the log. Returns the exit code."""
        traceback.print_exception(error)
        if not isinstance(error, PenstockError):
            error = _unexpected(error)
        self._last("failed", _described(error))
        leave_message(error)
        return error.exit_code

    def abort(self, fault: NoProgress) -> None:
        """Ends the process while its query hangs, whatever its other threads and the JVM wait for. Does not return."""
        try:
            print(fault.render(), file=sys.stderr, flush=True)
            self._last("failed", _described(fault))
            leave_message(fault)
            self._spark.abort()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(fault.exit_code)

    def _last(self, event: str, detail: Mapping[str, object]) -> None:
        if not self._first.acquire(blocking=False):
            # An abort has begun, and ends this thread with the process.
            threading.Event().wait()
        self._emit(event, detail)


def _unexpected(error: Exception) -> QueryFailed:
    if _STOPPED in str(error):
        fix = "check the driver's log for Spark's last errors: executors that could not be created, or too many that failed within an hour"
        return QueryFailed(path="driver", given="Spark has stopped by itself", fix=fix)
    return QueryFailed(path="driver", given=f"{type(error).__name__}: {first_line(error)}", fix="check the driver's log")


def _described(error: PenstockError) -> dict[str, object]:
    return {"errors": [fault.as_json() for fault in error.errors]}
