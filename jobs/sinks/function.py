"""A function of the app as a sink, called with the rows of each micro-batch: Spark's foreachBatch made idempotent.

Guarantee: the function is not called again with a micro-batch that it has completed: when it returns, a marker is written into the
checkpoint, and a replay that finds the marker skips the call. Only if the driver ends within the function, or between its return and the
marker, is it called again, with the same ``batch.number``: a function that uses this number, or upserts, is exactly-once; any other is
at-least-once in that case only. A driver that was suspended within the call, or before it, and goes on after another one has taken over,
finishes or makes the call: later than those of later micro-batches.

Cost: a GET and a PUT per micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.jobs.sinks.errors import SinkFunctionFailed
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of
from penstock.jobs.spec import FunctionSink
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.sizing.errors import PenstockError


@dataclass(frozen=True)
class Function:
    """Sink that calls a function.

    Args:
        name: name of the sink in the spec.
        function: function of the data columns of the rows and the micro-batch.
        checkpoint: checkpoint with the markers.
    """

    name: str
    function: Callable[[DataFrame, Batch], object]
    checkpoint: Checkpoint

    @classmethod
    def of(cls, name: str, sink: FunctionSink, context: SinkContext) -> Function:
        """Builds the sink from its spec.

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
        """Does nothing: the function is only called with rows."""

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Calls the function unless it has completed this micro-batch or the micro-batch has no rows.

        Raises:
            SinkFunctionFailed: JOB-057, the function raised.
        """
        if not batch.rows or self.checkpoint.get(self._marker(batch.number)) is not None:
            return
        try:
            self.function(rows.select(*fields_of(rows)), batch)
        except PenstockError:
            raise
        except Exception as error:
            given = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            fix = "correct the function, see the driver's log; the job resumes with this micro-batch"
            path = f"sink {self.name}, batch {batch.number}"
            raise SinkFunctionFailed(path=path, given=given, need="a function that returns normally", fix=fix) from error
        self.checkpoint.put_once(self._marker(batch.number), "done")
        self.checkpoint.delete_expired(self._marker, batch.number - self.checkpoint.retained)

    def _marker(self, batch: int) -> str:
        return f"sinks/{self.name}/{batch}.done"
