"""What becomes of state that has another parallelism than its job's plan, in a job that starts from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.infra.environment import Environment
from penstock.infra.plans import plans
from penstock.jobs.driver.repartitionable_state import refuse_unsupported
from penstock.jobs.spec.stage_settings import SHUFFLE_PARTITIONS
from penstock.jobs.storage.stored_state import StoredState


def planned_partitions(environment: Environment) -> dict[str, int]:
    """Job -> shuffle partitions by its plan.

    Args:
        environment: of the jobs.

    Raises:
        PenstockError: as `plans`.
    """
    return {job.name: int(job.plan.spark_conf[SHUFFLE_PARTITIONS]) for job in plans(environment).jobs}


def repartitioned(path: str, states: Mapping[str, StoredState], partitions: int) -> Iterator[str]:
    """Says of each query with other shuffle partitions that its state is repartitioned.

    Args:
        path: of the checkpoint, or of the savepoint.
        states: query -> its state; without queries that have none.
        partitions: shuffle partitions by the plan.

    Raises:
        StateNotRepartitioned: JOB-109, Spark can't repartition it.
        BucketUnreachable: JOB-009.
    """
    for name, one in states.items():
        before = one.settings.shuffle_partitions
        if before not in (None, partitions):
            refuse_unsupported(path, one, partitions)
            yield f"{said(name)}: its state is repartitioned from {before} to {partitions} shuffle partitions"


def said(query: str) -> str:
    """A query, as sentences name it."""
    return f"query {query}" if query else "the query"
