"""Tasks of each kind of stage, as Spark is told of them. Knows nothing of Spark itself: sizing reads it too."""

from __future__ import annotations

from penstock.jobs.spec.job import Stages

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def stages_conf(stages: Stages) -> dict[str, str]:
    """Spark's settings for a spec's stages: those after a shuffle. What reads and what comes before the state are matters of the plan."""
    return {} if stages.stateful is None else {SHUFFLE_PARTITIONS: str(stages.stateful)}
