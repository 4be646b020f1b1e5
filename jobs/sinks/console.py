"""The driver's log as a sink: for a look at what passes.

Guarantee: none beyond that of a log; the first rows of a micro-batch, again where it is run again. Cost: those rows go through the driver.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of
from penstock.jobs.spec import ConsoleSink


@dataclass(frozen=True)
class Console:
    """The log.

    Args:
        name: of the sink in the spec.
        sink: as the spec has it.
    """

    name: str
    sink: ConsoleSink

    @classmethod
    def of(cls, name: str, sink: ConsoleSink, context: SinkContext) -> Console:
        """The sink of a spec."""
        return cls(name, sink)

    def check(self) -> None:
        """There is always a log."""

    def idle(self, now_ms: int) -> None:
        """Nothing is held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes a headline and the first rows, a line of JSON each."""
        if not batch.rows:
            return
        json = F.to_json(F.struct(*fields_of(rows)), {"ignoreNullFields": "false"})
        lines = [str(row["line"]) for row in rows.select(json.alias("line")).limit(self.sink.rows).collect()]
        first = f", the first {len(lines)}" if len(lines) < batch.rows else ""
        # In one piece, so that Spark's own lines do not come between; JSON has no line breaks that a row could bring in.
        sys.stderr.write("\n".join([f"sink {self.name}, batch {batch.number}: {batch.rows} rows{first}", *lines]) + "\n")
        sys.stderr.flush()
