"""Tasks of each kind of stage as Spark settings. Does not import Spark, since sizing uses it too."""

from __future__ import annotations

from penstock.jobs.spec.job import Stages

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def stages_conf(stages: Stages) -> dict[str, str]:
    """Spark's settings for a spec's stages after a shuffle. Tasks that read, and those before the state, are part of the plan."""
    return {} if stages.stateful is None else {SHUFFLE_PARTITIONS: str(stages.stateful)}
