"""The driver's log as a sink, for inspecting rows.

Guarantee: none. The first rows of a micro-batch are logged, again if it is run again, also by a driver that was frozen while another one
took over. Cost: those rows go through the driver.
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
    """Sink that writes to the log.

    Args:
        name: name of the sink in the spec.
        sink: sink of the spec.
    """

    name: str
    sink: ConsoleSink

    @classmethod
    def of(cls, name: str, sink: ConsoleSink, context: SinkContext) -> Console:
        """Builds the sink from its spec."""
        return cls(name, sink)

    def check(self) -> None:
        """Does nothing: the log always exists."""

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Logs a heading and the first rows as JSON, one row a line."""
        if not batch.rows:
            return
        json = F.to_json(F.struct(*fields_of(rows)), {"ignoreNullFields": "false"})
        lines = [str(row["line"]) for row in rows.select(json.alias("line")).limit(self.sink.rows).collect()]
        first = f", the first {len(lines)}" if len(lines) < batch.rows else ""
        # A single write keeps Spark's own log lines out. A row can't break a line, since JSON escapes line breaks.
        sys.stderr.write("\n".join([f"sink {self.name}, batch {batch.number}: {batch.rows} rows{first}", *lines]) + "\n")
        sys.stderr.flush()
