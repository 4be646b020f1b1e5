"""Local properties of a task's context, for tests that run a block's DataFrame outside a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tests.jobs.spark.running import CHECKPOINTS

OF_THE_DRIVER = {
    "penstock.checkpoint": f"s3a://{CHECKPOINTS}/by-hand/1",
    "penstock.fencingToken": "7",
    "penstock.sideOutputs": "quarantined",
    "penstock.watermark": "",
    "penstock.batchTime": "1743856200000",
}
OF_SPARK = {"streaming.sql.batchId": "12", "spark.jobGroup.id": "a-run"}
ALL = OF_THE_DRIVER | OF_SPARK


@contextmanager
def local_properties(session: SparkSession, properties: Mapping[str, str]) -> Iterator[None]:
    """Sets these local properties of this thread, and removes the others of a task's context."""
    context = session.sparkContext
    before = {name: context.getLocalProperty(name) for name in ALL}
    for name in before:
        _set(session, name, properties.get(name))
    try:
        yield
    finally:
        for name, value in before.items():
            _set(session, name, value)


def _set(session: SparkSession, name: str, value: str | None) -> None:
    session.sparkContext.setLocalProperty(name, value)  # type: ignore[arg-type]
