"""Whether what a spec and its app are now can go on with the state of the job that is deployed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.jobs.driver.checkpoint_changes import checkpoint_changes
from penstock.jobs.driver.fixed_parallelism import FixedParallelism
from penstock.jobs.driver.initial_offsets import as_read_on
from penstock.jobs.driver.sink_changes import sink_changes
from penstock.jobs.savepoints.before_upgrade import savepoint_name
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.starting import refuse_lost_queries
from penstock.jobs.spec import SpecFile
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.continuation import InitialSavepoint, SavepointStart
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.stored_state import StoredState
from penstock.scripts.operations.another_parallelism import repartitioned, said
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Verdict = Literal["no state yet", "goes on", "not known", "begins without", "refused"]


class UpgradeCheck(BaseModel):
    """The check of a job.

    Args:
        job: its name.
        verdict: ``goes on``: with the state in the checkpoint, or without any that its operators would keep. ``not known``: the generation
            was begun by a release that recorded no schemas. ``begins without``: as the spec asks for.
        generation: number of the newest one that has begun.
        checkpoint: where its state is.
        reasons: why it is refused, or what the verdict hangs on.
        notes: what does not stop it, and may not be what the spec says.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    job: str
    verdict: Verdict
    generation: int | None = None
    checkpoint: str | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def checked(spec: SpecFile, now: Mapping[str, QueryRecord], partitions: int, bucket: str, s3: S3Client) -> UpgradeCheck:
    """Compares a job with its newest generation. Nothing is written.

    Args:
        spec: of the job.
        now: its queries, of `penstock.jobs.driver.check.stored_queries`.
        partitions: shuffle partitions by its plan.
        bucket: of the checkpoints.
        s3: client.

    Raises:
        PenstockError: JOB-008, JOB-009.
    """
    job, folder = spec.job.metadata.name, JobFolder(f"s3a://{bucket}/{spec.job.metadata.name}", s3)
    current, initial = folder.current(), InitialSavepoint.of(spec.job.spec)
    if initial is not None and initial.counts(current):
        return _from_savepoint(spec, initial.start, current, now, partitions, s3)
    if current is None:
        earlier = folder.checkpoints()
        if earlier:
            return UpgradeCheck(job=job, verdict="not known", reasons=("its checkpoint is of a release that recorded no generations",))
        return UpgradeCheck(job=job, verdict="no state yet")
    place = {"generation": current.number, "checkpoint": folder.checkpoint(current.checkpoint).uri}
    reason = _begins_without(spec, current)
    if reason is not None:
        return UpgradeCheck.model_validate({"job": job, "verdict": "begins without", "reasons": (reason,), **place})
    verdict, reasons = _compared(spec, current, now, partitions, folder)
    notes = () if verdict == "refused" else tuple(_notes(spec, current, now, partitions, folder))
    if verdict in ("goes on", "not known") and spec.job.spec.upgrade_mode == "savepoint":
        notes = (f"if anything of the job changes, its driver first takes savepoint {savepoint_name(current.number)}", *notes)
    return UpgradeCheck.model_validate({"job": job, "verdict": verdict, "reasons": reasons, "notes": notes, **place})


def _from_savepoint(
    spec: SpecFile, start: SavepointStart, current: Generation | None, now: Mapping[str, QueryRecord], partitions: int, s3: S3Client
) -> UpgradeCheck:
    """A job whose next generation starts from the spec's savepoint."""
    place = {"job": spec.job.metadata.name, "generation": current.number if current else None, "checkpoint": start.uri}
    try:
        folder = SavepointFolder(start.uri, s3)
        saved = as_read_on(start.offsets, folder, folder.manifest(), spec)
        refuse_lost_queries(saved, start, list(now))
        states = {name: folder.state(saved, name) for name in _with_state(now) if name in saved.queries}
        notes = tuple(repartitioned(start.uri, states, partitions))
    except PenstockError as error:
        return UpgradeCheck.model_validate({**place, "verdict": "refused", "reasons": tuple(_said(error))})
    verdict, reasons = _fits(spec, saved.generation, {} if saved.generation is None else saved.generation.queries, now)
    return UpgradeCheck.model_validate({**place, "verdict": verdict, "reasons": reasons, "notes": () if verdict == "refused" else notes})


def _with_state(queries: Mapping[str, QueryRecord]) -> list[str]:
    return [name for name, query in queries.items() if query.operators]


def _begins_without(spec: SpecFile, current: Generation) -> str | None:
    if spec.job.spec.rewind_to is not None and spec.job.spec.rewind_to != current.rewound_to:
        return "rewindTo is another time"
    return "upgradeMode is stateless" if spec.job.spec.upgrade_mode == "stateless" else None


def _compared(
    spec: SpecFile, current: Generation, now: Mapping[str, QueryRecord], partitions: int, folder: JobFolder
) -> tuple[Verdict, tuple[str, ...]]:
    checkpoint = folder.checkpoint(current.checkpoint)
    try:
        folder.refuse_missing(current)
        begun = [name for name in current.queries if checkpoint.of_query(name).last_record().batch >= 0]
        if _repartitions(spec):
            tuple(repartitioned(checkpoint.uri, _fixed(checkpoint, begun, now), partitions))
    except PenstockError as error:
        return "refused", tuple(_said(error))
    before = {name: query for name, query in current.queries.items() if name in begun}
    if not before:
        return "no state yet", ()
    return _fits(spec, current, before, now)


def _fits(
    spec: SpecFile, recorded: Generation | None, before: Mapping[str, QueryRecord], now: Mapping[str, QueryRecord]
) -> tuple[Verdict, tuple[str, ...]]:
    """Whether what a generation has recorded of its queries is what the app would keep."""
    if spec.job.spec.checkpoint.state_schema == "any":
        return "not known", ("checkpoint.stateSchema is any: Spark decides when the driver starts",)
    differences = tuple(one for fault in checkpoint_changes(before, now) for one in _said(fault))
    if differences:
        return "refused", differences
    if recorded is None:
        return "not known", ("the savepoint is of a release that recorded no generations",)
    if any(operator.state is None for query in before.values() for operator in query.operators):
        return "not known", (f"generation {recorded.number} is of a release that recorded no schemas",)
    return "goes on", ()


def _repartitions(spec: SpecFile) -> bool:
    """Whether the state of a changed job gets the parallelism of the plan."""
    return spec.job.spec.upgrade_mode == "savepoint" and not spec.job.spec.bounded


def _fixed(checkpoint: Checkpoint, begun: Iterable[str], now: Mapping[str, QueryRecord]) -> dict[str, StoredState]:
    return {name: StoredState.of(checkpoint.of_query(name)) for name in begun if name in now and now[name].operators}


def _notes(spec: SpecFile, current: Generation, now: Mapping[str, QueryRecord], partitions: int, folder: JobFolder) -> Iterator[str]:
    """What a driver would not do as the spec says, or what people may not expect."""
    for name in now.keys() - current.queries.keys():
        yield f"{said(name)} is new: it begins at the start offsets, without state"
    for name in current.queries.keys() - now.keys():
        yield f"{said(name)} is gone: its checkpoint stays where it is, and is gone on with when it comes back"
    for name in now.keys() & current.queries.keys():
        yield from _kept(name, current.queries[name], spec, partitions, folder.checkpoint(current.checkpoint).of_query(name))
        yield from (f"{said(name)}: {change}" for change in sink_changes(current.queries[name], now[name]))
    if current.versions.spark != (here := version("pyspark")):
        yield f"generation {current.number} ran on Spark {current.versions.spark}, and this is {here}"


def _kept(name: str, before: QueryRecord, spec: SpecFile, partitions: int, checkpoint: Checkpoint) -> Iterator[str]:
    """What a query's checkpoint keeps, whatever the spec says."""
    if before.reads is None:
        yield f"{said(name)}: the generation is of a release that recorded no sources, so they are not compared"
    fixed = checkpoint.fixed_settings()
    if before.operators and fixed.shuffle_partitions not in (None, partitions):
        kept = FixedParallelism(partitions, fixed.shuffle_partitions)
        moved = f"its state is repartitioned from {kept.checkpoint} to {partitions} shuffle partitions, in a new checkpoint"
        yield f"{said(name)}: {moved if _repartitions(spec) else kept}"
    if before.operators and fixed.state_backend not in (None, spec.job.spec.state.backend):
        yield f"{said(name)}: its state stays in {fixed.state_backend}, that of its checkpoint, instead of the spec's state.backend"


def _said(error: PenstockError) -> Iterator[str]:
    return (f"{one.code} {one.path}: {one.given}" for one in error.errors)
