"""Rows of one input, counted by key on their way into a sink controlled by the test and into files, without a shuffle."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from penstock import Batch, Job, observe_keys

# What the test does between the evaluation of a micro-batch and its files.
meanwhile: Callable[[], object] = int


def build(job: Job) -> None:
    rows = observe_keys(job.source("a", "key STRING NOT NULL, at STRING, name STRING"), "keys", "key")
    job.write(rows.select(key="key", name="name"), {"slow": None, "out": None})
    job.side_output("errors")


def slow(rows: DataFrame, batch: Batch) -> None:
    meanwhile()
