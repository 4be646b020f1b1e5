"""One input to a table, to hashes and to a function; quarantined records are posted."""

from pyspark.sql import DataFrame

from penstock import Batch, Job

CALLED: list[tuple[int, list[str]]] = []


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, amount DOUBLE")
    job.write(rows, {"cache": None, "bank": "amount > 0", "own": "amount > 100"})
    job.side_output("alerts")


def called(rows: DataFrame, batch: Batch) -> None:
    CALLED.append((batch.number, sorted(row["key"] for row in rows.collect())))
