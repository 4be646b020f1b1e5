"""What a spec says of its checkpoint as Spark settings. Does not import Spark, since sizing uses it too."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.jobs.spec.job import JobSpec
from penstock.sizing.spark_settings import MIN_BATCHES_TO_RETAIN, MIN_BATCHES_TO_RETAIN_KEY

# Ours: Spark reads the logs of all retained micro-batches when a query starts, and S3 lists a thousand objects per request.
MOST_BATCHES = 100_000


def retention_conf(spec: JobSpec) -> dict[str, str]:
    """Spark's setting for ``checkpoint.retention``: micro-batches of that time, at least as many as Spark keeps anyway."""
    batches = asked_batches(spec)
    return {} if batches is None else {MIN_BATCHES_TO_RETAIN_KEY: str(max(batches, MIN_BATCHES_TO_RETAIN))}


def asked_batches(spec: JobSpec) -> int | None:
    """The micro-batches that the trigger starts within ``checkpoint.retention``; None without both."""
    retention, trigger = spec.checkpoint.retention, spec.trigger
    return None if retention is None or trigger == "availableNow" else math.ceil(retention / trigger)


def retained_batches(conf: Mapping[str, str]) -> int:
    """The micro-batches that Spark can go back to with these settings."""
    return int(conf.get(MIN_BATCHES_TO_RETAIN_KEY, MIN_BATCHES_TO_RETAIN))
