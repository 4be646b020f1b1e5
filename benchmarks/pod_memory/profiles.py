"""Each hundredth order of a customer, by a keyed function in Python that keeps 2 kB of each customer."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock import Job, Key, Tag, process, value

OPERATORS = ("read-orders", "keep-profiles", "write-milestones")
EVERY = 100
PROFILE_BYTES = 2_000


def milestone(row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
    """Counts the customer's orders, and keeps the times of the last ones."""
    count = (key.value("orders").get() or 0) + 1
    key.value("orders").set(count)
    profile = key.value("profile").get() or "-" * PROFILE_BYTES
    key.value("profile").set(f"{profile},{row.at}"[-PROFILE_BYTES:])
    if count % EVERY == 0:
        yield {"customer": row.customer, "orders": count}


def build(job: Job) -> None:
    """Declares the job."""
    orders = job.source("orders", "customer STRING NOT NULL, at BIGINT")
    state = {"orders": value("bigint"), "profile": value("string")}
    job.write(process(orders, ["customer"], milestone, output="customer STRING, orders BIGINT", state=state), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
