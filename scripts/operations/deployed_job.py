"""A job of an environment, with its cluster and its folder on S3, for verbs that act on one."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.infra.environment import Environment
from penstock.infra.environment_file import argument_of
from penstock.infra.job_specs import spec_in
from penstock.infra.sessions import session_of
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.spec import SpecFile
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.errors import CheckpointMissing
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.rewind_request import RewindRequestFile
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.job_records import JobRecords
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.scripts.provisioning import eks_cluster
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import JobNotDeployed

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from mypy_boto3_s3 import S3Client

    from penstock.scripts.operations.running_job import RunningJob


def add_job_argument(parser: argparse.ArgumentParser) -> None:
    """``--job NAME``, which is required."""
    parser.add_argument("--job", required=True, metavar="NAME", help="a job of the environment")


def jobs_of(environment: Environment, names: Sequence[str] = ()) -> list[SpecFile]:
    """The specs of an environment's jobs.

    Args:
        environment: of the jobs.
        names: of those that are meant; all if there are none.

    Raises:
        WrongUsage: USE-001, no job has the name.
        PenstockError: what is wrong with a spec.
    """
    specs = {spec.job.metadata.name: spec for spec in (spec_in(environment, Path(job.spec)) for job in environment.spec.jobs)}
    for name in names:
        if name not in specs:
            close = difflib.get_close_matches(name, specs, n=1)
            need = f"a job of environment {environment.name}: {', '.join(specs) or 'it has none'}"
            raise WrongUsage(given=f"--job {name}", need=need, fix=f"did you mean {close[0]}?" if close else "correct the name")
    return [spec for name, spec in specs.items() if not names or name in names]


class DeployedJob:
    """A job of an environment, with its ``spec``, its ``aws`` and the ARN of the ``caller``.

    Args:
        environment: of the job.
        name: of the job.

    Raises:
        PenstockError: USE-001, DEP-002, TOOL-030, and what is wrong with a spec.
    """

    def __init__(self, environment: Environment, name: str) -> None:
        (self.spec,) = jobs_of(environment, [name])
        self.name = name
        self.environment = environment
        self.aws = AwsAccess(environment)
        self.caller = self.aws.check_account().arn
        self._s3: S3Client = self.aws.client("s3")
        self._bucket = environment.spec.buckets.checkpoints

    @property
    def records(self) -> JobRecords:
        """The records in its folder that a rewind reads and writes."""
        uri = f"s3a://{self._bucket}/{self.name}"
        return JobRecords(JobFolder(uri, self._s3), RewindRequestFile(uri, self._s3), self.runs)

    @property
    def s3(self) -> S3Client:
        """A client with the caller's permissions."""
        return self._s3

    @property
    def savepoints(self) -> Savepoints:
        """Its savepoints."""
        return Savepoints(f"s3a://{self._bucket}/{self.name}", self._s3)

    @property
    def runs(self) -> DriverRunsFile:
        """The runs of its drivers."""
        return DriverRunsFile(f"s3a://{self._bucket}/{self.name}", self._s3)

    @property
    def session(self) -> str | None:
        """The session that it runs in; None: it has a driver of its own."""
        return session_of(self.environment, self.name)

    @property
    def owner(self) -> str:
        """What the namespace of its pods goes by: the job, or its session."""
        return self.session or self.name

    def why_not(self) -> str:
        """Why it does not read, as far as that is known."""
        return self.status().cause or "no failure is recorded"

    def running(self, api: ApiClient) -> RunningJob:
        """The job in its cluster.

        Args:
            api: client of the cluster's API.
        """
        # The client of Kubernetes takes long to import.
        from penstock.scripts.operations.job_of_session import JobOfSession
        from penstock.scripts.operations.running_job import OwnDriver

        session = self.session
        if session is not None:
            return JobOfSession(api, self.name, session, self.runs, self.status)
        return OwnDriver(api, self.name, lambda: self.runs.change(DriverRuns.resumed))

    def status(self) -> JobStatus:
        """Its status now."""
        return status_of(self.spec, self._bucket, self._s3, datetime.now(UTC))

    def checkpoint(self, number: int | None = None) -> tuple[Checkpoint, Generation | None]:
        """The checkpoint of a generation, and its record; without one of a job that an earlier release has run.

        Args:
            number: of the generation; None: the newest one.

        Raises:
            WrongUsage: USE-001, the job has no such generation.
            CheckpointMissing: JOB-086, the job has no checkpoint.
            CheckpointDamaged: JOB-008, the generation's record can't be read.
            BucketUnreachable: JOB-009.
        """
        folder = JobFolder(f"s3a://{self._bucket}/{self.name}", self._s3)
        numbers = folder.generations()
        if number is not None and number not in numbers:
            need = f"a generation of {self.name}: {', '.join(map(str, numbers)) or 'none has begun'}"
            raise WrongUsage(given=f"--generation {number}", need=need, fix="leave it out for the current one")
        if numbers:
            generation = folder.generation(numbers[-1] if number is None else number)
            return folder.checkpoint(generation.checkpoint), generation
        checkpoints = folder.checkpoints()
        if not checkpoints:
            need, fix = "a checkpoint, which its driver creates when it first starts", "check penstock status"
            raise CheckpointMissing(path=folder.uri, given="no generation has begun", need=need, fix=fix)
        return folder.checkpoint(checkpoints[-1]), None

    @contextmanager
    def cluster(self) -> Iterator[ApiClient]:
        """A client of its cluster's API.

        Raises:
            JobNotDeployed: DEP-017, there is no cluster.
            ApiServerNotReached: DEP-007.
        """
        with cluster_of(self.aws, self.environment, f"job {self.name}") as api:
            yield api


@contextmanager
def cluster_of(aws: AwsAccess, environment: Environment, what: str) -> Iterator[ApiClient]:
    """A client of the API of an environment's cluster.

    Args:
        aws: of the environment.
        environment: with the cluster.
        what: is looked for in it, for errors.

    Raises:
        JobNotDeployed: DEP-017, there is no cluster.
        ApiServerNotReached: DEP-007.
    """
    # The client of Kubernetes takes long to import.
    from penstock.scripts.provisioning.kubernetes_access import connected, eks_token

    address = eks_cluster.reached(aws)
    if isinstance(address, str):
        fix = f"deploy it: penstock deploy {argument_of(environment)}"
        raise JobNotDeployed(path=what, given=address, need="a cluster that it runs in", fix=fix)
    with connected(address, lambda: eks_token(aws, address.name)) as api:
        yield api
