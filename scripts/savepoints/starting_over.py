"""A deployed job starts from a savepoint: what that means, and the request that its driver obeys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.infra.environment_file import argument_of
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import SavedQuery
from penstock.jobs.savepoints.taking import Taken, queries_of, take
from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.storage import state_files
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.stored_state import StoredState
from penstock.scripts.operations.another_parallelism import planned_partitions, repartitioned
from penstock.scripts.operations.deployed_job import DeployedJob
from penstock.scripts.operations.rewind_preview import sinks_table
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.errors import JobHasNotRun
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import facts
from penstock.scripts.savepoints.listing import after
from penstock.scripts.savepoints.reading_on import ReadingOn, reading_on_lines

_AGAIN = "what has come since then, also what the job has read: its rows of that are written twice"
_FILES = "those that were open then are published with the rows that they had, unless the job's checkpoint has published them"


def newest_of(job: DeployedJob, uri: str, *, allow_non_restored_state: bool, offsets: InitialOffsets | None = None) -> Generation:
    """The newest generation of a job that is to start from a savepoint: a request is for the one after it.

    Args:
        job: the job.
        uri: of the savepoint.
        allow_non_restored_state: whether it may have queries that the app does not have.
        offsets: where its topics are read on at, instead of at its offsets.

    Raises:
        JobHasNotRun: DEP-053, none has begun.
        PenstockError: JOB-008, JOB-009.
    """
    current = job.records.folder.current()
    if current is not None:
        return current
    spec = job.spec.job.spec
    read_on = [] if offsets is None else [f"  initialOffsets: {json.dumps(offsets) if isinstance(offsets, dict) else offsets}"]
    lines = ["spec:", f"  initialSavepointPath: {uri}", *read_on, *(["  allowNonRestoredState: true"] if allow_non_restored_state else [])]
    deploy = f"penstock deploy {argument_of(job.environment)}"
    fix = "\n       ".join((f"put this into {job.spec.path}, and then {deploy}:", *lines))
    if (spec.initial_savepoint_path, spec.initial_offsets) == (uri, offsets) and (
        spec.allow_non_restored_state or not allow_non_restored_state
    ):
        fix = f"{deploy}: {job.spec.path} names this savepoint, and its first driver starts from it"
    need = "a job that a driver has run; the first driver of one that has not starts from the savepoint that the spec names"
    raise JobHasNotRun(path=f"job {job.name}", given="no generation", need=need, fix=fix)


@dataclass(frozen=True)
class StartingOver:
    """A job that is to start from a savepoint.

    Args:
        job: the job.
        newest: its newest generation.
        steps: receives a line per finished step.
    """

    job: DeployedJob
    newest: Generation
    steps: Steps

    def checkpoint_as_of(self, until: datetime | None) -> tuple[Checkpoint, Taken]:
        """Its checkpoint, and whose it is, as of the last micro-batches up to a time; None: the last ones of all."""
        checkpoint, generation = self.job.checkpoint()
        environment = self.job.environment.name
        return checkpoint, Taken(self.job.name, environment, by=self.job.caller, generation=generation, until=until)

    def queries(self, checkpoint: Checkpoint, of: Taken) -> dict[str, SavedQuery]:
        """What the savepoint would be of. Nothing is written. Raises DEP-031, DEP-032, DEP-034, JOB-008, JOB-009."""
        return queries_of(checkpoint, of)

    def repartitioned(self, path: str, states: Mapping[str, StoredState]) -> list[str]:
        """What becomes of state of another parallelism than that of the job's plan.

        Args:
            path: of the checkpoint, or of the savepoint.
            states: query -> its state.

        Raises:
            StateNotRepartitioned: JOB-109, Spark can't repartition it.
            PenstockError: JOB-009, and as `planned_partitions`.
        """
        stateful = {name: one for name, one in states.items() if state_files.versions(one.names())}
        return list(repartitioned(path, stateful, planned_partitions(self.job.environment)[self.job.name])) if stateful else []

    def taken(self, checkpoint: Checkpoint, of: Taken, folder: SavepointFolder) -> SavepointFolder:
        """The savepoint in that folder, taken unless an interrupted command has."""
        if not folder.begun():
            with self.steps.at("savepoint", f"copying {checkpoint.uri}") as step:
                take(checkpoint, folder, of, self.job.s3, step.watch)
                step.said = f"{folder.name} is complete"
        return folder

    def shown(
        self,
        how: str,
        queries: Mapping[str, SavedQuery],
        screen: Screen,
        state: Sequence[str],
        of: str = "",
        reading_on: ReadingOn | None = None,
    ) -> Iterator[str]:
        """What the start means.

        Args:
            how: says what the job does.
            queries: of the savepoint.
            screen: where it goes.
            state: what becomes of it.
            of: what the savepoint was taken of; empty if it is this job's, now.
            reading_on: where it reads on, if not at the savepoint's offsets.
        """
        yield f"{self.job.name} {how}, as generation {self.newest.number + 1} with a new checkpoint"
        yield ""
        reads = [(f"query {name}" if name else "reads on", after(query)) for name, query in queries.items()]
        stays = f"{self.newest.checkpoint} stays where it is; penstock rewind --undo goes back to it"
        taken = [("taken of", of)] if of else []
        again = [("read again", _AGAIN)] if reading_on is None else []
        repartitioned = [("state", one) for one in state]
        yield from facts([*reads, *again, *repartitioned, ("files", _FILES), *taken, ("checkpoint", stays)], screen)
        if reading_on is not None:
            yield ""
            yield from reading_on_lines(reading_on, screen)
        yield ""
        yield from sinks_table(self.job.spec.job.spec, screen)

    def gone_on_with(self, folder: SavepointFolder, queries: Mapping[str, SavedQuery], offsets: InitialOffsets | None = None) -> bool:
        """Waits for a driver that an interrupted command has started, if it has obeyed the same request and committed nothing since.

        Args:
            folder: of the savepoint among those of the job.
            queries: of the savepoint.
            offsets: where its topics are read on at, instead of at its offsets.

        Returns:
            Whether there is one: another start would do the same again.

        Raises:
            PenstockError: as `Rewinding.go_on`.
        """
        from penstock.scripts.operations.rewinding import Rewinding  # the client of Kubernetes takes long to import

        begun = self.job.records.started(self.newest, folder.uri, {name: query.batch for name, query in queries.items()}, offsets)
        if begun is None:
            return False
        with self.job.cluster() as api:
            Rewinding(self.job.running(api), self.job.records, self.steps).go_on(begun)
        return True

    def start_from(
        self, folder: SavepointFolder, *, fork: bool = False, allow_non_restored_state: bool = False, offsets: InitialOffsets | None = None
    ) -> None:
        """Requests the start from one of the job's savepoints, stops the driver, starts it, and waits until it reads.

        Raises:
            PenstockError: as `Rewinding.carry_out`.
        """
        from penstock.jobs.storage.rewind_request import RewindRequest
        from penstock.scripts.operations.rewinding import Rewinding  # the client of Kubernetes takes long to import

        request = RewindRequest(
            after=self.newest.number,
            start_from=folder.uri,
            offsets=offsets,
            of_another_job=fork,
            allow_non_restored_state=allow_non_restored_state,
            spec_rewind_to=self.job.spec.job.spec.rewind_to,
            asked=datetime.now(UTC),
            by=self.job.caller,
        )
        with self.job.cluster() as api:
            Rewinding(self.job.running(api), self.job.records, self.steps).carry_out(request)
