"""Memory of an executor's Python workers, and of the batches that they exchange with its JVM.

Spark starts a worker process for each Python operator of each running task, and keeps it for the next task. Penstock's daemon forks them,
so that they share what it has imported.

Source of the constants: `benchmarks.executor_memory` on 2026-11-25, Spark 4.3.0, rows of 200 and of 2,000 bytes, rounded up; docs/sizing.md
has the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from penstock.sizing.units import MIB

PythonUse = Literal["udf", "pandas", "arrow", "keyed", "client"]

# A worker's own memory besides its batches, by what it runs. A client includes a part of an upload, with its copy in the request.
WORKER_MIB: dict[PythonUse, int] = {"udf": 43, "pandas": 45, "arrow": 43, "keyed": 45, "client": 80}
# The daemon, with the modules that its workers share.
DAEMON_MIB = 150
# Source: Spark 4.3.0, spark.sql.execution.arrow.maxRecordsPerBatch.
RECORDS_PER_BATCH = 10_000
# Ours: where no load says how large a record is.
DEFAULT_RECORD_BYTES = 256
# Measured: a worker has a batch as it was read, as Python's objects, which take the most, and as it is written.
COPIES_IN_A_WORKER = 9
# Measured: the JVM has batches on their way to the worker and back, in buffers outside of its heap that it allocates ahead.
COPIES_IN_THE_JVM = 5


class PythonMemory(BaseModel):
    """Memory of Python on one executor, in MiB, all of it in the pod's overhead.

    Args:
        workers: worker processes.
        workers_mib: of all of them.
        daemon_mib: of the daemon that forks them.
        batches_mib: of the JVM's batches for them.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    workers: int
    workers_mib: int
    daemon_mib: int
    batches_mib: int

    @property
    def total_mib(self) -> int:
        """The sum."""
        return self.workers_mib + self.daemon_mib + self.batches_mib


def batch_bytes(record_bytes: int, task_bytes: int | None = None) -> int:
    """The size of a batch between the JVM and a worker.

    Args:
        record_bytes: size of a record.
        task_bytes: what a task reads at most in a micro-batch; None: not known.
    """
    full = RECORDS_PER_BATCH * record_bytes
    return full if task_bytes is None else min(full, task_bytes)


def python_memory(uses: Sequence[PythonUse], slots: int, batch: int) -> PythonMemory:
    """Memory of the Python workers of one executor.

    Args:
        uses: the Python operators of a job. All of them may be in one stage, so each has a worker in each slot.
        slots: task slots of the executor.
        batch: bytes of a batch, as `batch_bytes`.
    """
    if not uses:
        return PythonMemory(workers=0, workers_mib=0, daemon_mib=0, batches_mib=0)
    rows_mib = -(-batch * COPIES_IN_A_WORKER // MIB)
    return PythonMemory(
        workers=slots * len(uses),
        workers_mib=slots * sum(WORKER_MIB[use] + rows_mib for use in uses),
        daemon_mib=DAEMON_MIB,
        batches_mib=-(-slots * len(uses) * batch * COPIES_IN_THE_JVM // MIB),
    )
