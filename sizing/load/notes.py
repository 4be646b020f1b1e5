"""Notes of a plan for a load, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.load.job_shape import JobShape
from penstock.sizing.load.load import Load
from penstock.sizing.load.load_plan import LoadPlan


def load_notes(load: Load, job: JobShape, draft: LoadPlan) -> tuple[str, ...]:
    """The notes of a plan."""
    return (*_extrapolated(load, draft), *_topics(job, draft), *_backend(load, job, draft), *_provisioned(draft))


def _extrapolated(load: Load, draft: LoadPlan) -> Iterator[str]:
    if load.profile is not None and draft.parallelism > load.profile.measured_slots:
        measured = load.profile.measured_slots
        yield f"the profile ends at {measured} slots: the throughput of {draft.parallelism} slots is extrapolated from its last points"


def _topics(job: JobShape, draft: LoadPlan) -> Iterator[str]:
    if len(job.topics) > 1:
        yield "the load is the sum over all topics: each gets partitions for all of it, and maxOffsetsPerTrigger must be divided among them"


def _backend(load: Load, job: JobShape, draft: LoadPlan) -> Iterator[str]:
    if draft.state.stores and draft.state.chosen:
        mib = -(-draft.state.state_bytes // (1024 * 1024))
        operators = ", ".join(sorted({*load.operators, *job.app_operators}))
        words = f"chosen for {mib:,} MiB of state on {draft.executors} executors and the operators {operators}"
        yield f"state backend {draft.state.backend}, {words}"


def _provisioned(draft: LoadPlan) -> Iterator[str]:
    cluster = draft.kafka.cluster
    if cluster is not None and cluster.provisioned_mibps:
        yield f"the brokers' volumes need {cluster.provisioned_mibps} MiB/s of provisioned throughput, above the default of 250"
