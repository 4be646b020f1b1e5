"""Each hundredth order of a customer, by a keyed function in Python."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock import Job, Key, Tag, process, value

OPERATORS = ("read-orders", "count", "write-milestones")
EVERY = 100


def milestone(row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
    """Counts the customer's orders."""
    count = (key.value("orders").get() or 0) + 1
    key.value("orders").set(count)
    if count % EVERY == 0:
        yield {"customer": row.customer, "orders": count}


def build(job: Job) -> None:
    """Declares the job."""
    orders = job.source("orders", "customer STRING NOT NULL, at BIGINT")
    job.write(process(orders, ["customer"], milestone, output="customer STRING, orders BIGINT", state={"orders": value("bigint")}), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
