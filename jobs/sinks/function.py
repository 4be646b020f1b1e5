"""A function of the app's as a sink, called with the rows of each micro-batch: what Spark's foreachBatch is, made idempotent.

Guarantee: a micro-batch that the function has done is never given to it again: when it has returned, a marker is written into the
checkpoint, and a replay that finds it calls nothing. Only where the driver ends within the function, or between its return and the marker,
is it called again, with the same ``batch.number``: a function that writes by that number, or by upsert, is exactly-once, any other one at
least once in that moment alone.

Cost: a GET and a PUT a micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.jobs.errors import SinkFunctionFailed
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of
from penstock.jobs.spec import FunctionSink
from penstock.jobs.storage.checkpoint import RETAINED_BATCHES, Checkpoint
from penstock.sizing.errors import PenstockError


@dataclass(frozen=True)
class Function:
    """A function to call.

    Args:
        name: of the sink in the spec.
        function: takes the data columns of the rows, and the micro-batch.
        checkpoint: where the markers lie.
    """

    name: str
    function: Callable[[DataFrame, Batch], object]
    checkpoint: Checkpoint

    @classmethod
    def of(cls, name: str, sink: FunctionSink, context: SinkContext) -> Function:
        """The sink of a spec.

        Raises:
            SinkFunctionFailed: JOB-057, the app has no such function.
        """
        function: Any = getattr(context.app, sink.name, None)
        if not callable(function):
            module = context.app.__name__ if context.app else "the app"
            need = f"a function {sink.name}(rows, batch) in {module}"
            raise SinkFunctionFailed(
                path=f"spec.sinks.{name}.function.name", given=sink.name, need=need, fix="define it, or correct the name"
            )
        return cls(name, function, context.checkpoint)

    def check(self) -> None:
        """Nothing is called without rows."""

    def idle(self, now_ms: int) -> None:
        """Nothing is held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Calls the function unless it has done this micro-batch; one without rows is none to it.

        Raises:
            SinkFunctionFailed: JOB-057, it raised.
        """
        if not batch.rows or self.checkpoint.get(self._marker(batch.number)) is not None:
            return
        try:
            self.function(rows.select(*fields_of(rows)), batch)
        except PenstockError:
            raise
        except Exception as error:
            given = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            fix = "check the driver's log; the job resumes with this micro-batch"
            path = f"sink {self.name}, batch {batch.number}"
            raise SinkFunctionFailed(path=path, given=given, need="a function that returns normally", fix=fix) from error
        self.checkpoint.put_once(self._marker(batch.number), "done")
        self.checkpoint.delete(self._marker(batch.number - RETAINED_BATCHES))

    def _marker(self, batch: int) -> str:
        return f"sinks/{self.name}/{batch}.done"
