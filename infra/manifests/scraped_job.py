"""A job as Prometheus has it: whose driver it scrapes, and by what its series are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Of all series of a job, with its name.
JOB_LABEL = "penstock_job"
# Of jobs/session/session_spark.py, one per job of a session: 1 while its queries read.
READING = "penstock_reading"


@dataclass(frozen=True)
class ScrapedJob:
    """A job whose driver is scraped.

    Args:
        name: of the job.
        driver_address: of its driver in the cluster's DNS, independent of its pod.
        bounded: whether it ends on its own, so that its driver's absence is not an error.
        trigger_ms: between its micro-batches, in ms; 0 for a bounded one; of a session the longest of its jobs.
        members: jobs of a session; empty: it is a job.
    """

    name: str
    driver_address: str
    bounded: bool
    trigger_ms: int = 0
    members: Sequence[str] = ()
