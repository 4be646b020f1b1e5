"""A run of a shipped job in pods from its topics to the verdict on its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient

from penstock.infra.manifests.deployed_job import namespace
from penstock.jobs.spec import load
from penstock.jobs.spec.requested_topics import asked_topics
from penstock.jobs.targets import targets
from penstock.scripts.local import input as local_input
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.job import Job
from penstock.scripts.local.machine import LocalMachine
from penstock.scripts.local.servers.starting import LocalServers
from penstock.scripts.local.verdict import Verdict, judge
from penstock.scripts.progress import Steps
from penstock.sizing.plan import plan
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.forwarding import Forwarding
from tests.pods.pod_run import STALL_LIMIT_S, PodRun, ReleasedJob
from tests.pods.team_job import Surroundings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_ANSWER_S = 30.0
# Number of committed micro-batches -> what is done to the job then.
Faults = dict[int, Callable[[ReleasedJob], None]]


@contextmanager
def run_of(
    spec: Path, cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, folder: Path
) -> Iterator[PodRun]:
    """A run of a job, with its topics and the servers of its connections; what it has left is deleted for the next run."""
    file = load(spec)
    planned = plan(targets(file, []))
    folders = (spec.parent,)
    job = Job(file, planned, folders, local_input.generators(file, folders), local_input.expectation(file, folders))
    settings = {name: asked.config for name, asked in asked_topics([file]).items()}
    # What ran before under the job's name, as on a lost node, may have written since its run has ended.
    cluster.wait_until_nothing_runs(namespace(job.name))
    delete_all(local)
    kafka_topics.create(local.kafka.address, planned.kafka.topics, settings)
    with ExitStack() as held:
        held.callback(delete_all, local)
        servers = held.enter_context(LocalServers(file, folders, folder / "servers"))
        urls = {name: held.enter_context(Forwarding(cluster.host, servers[name].port)).url for name in file.job.spec.local.connections}
        release = team_job.release(spec, around, folder / "release", urls)
        (folder / "values").mkdir()
        released = ReleasedJob(job.name, release, cluster, helm, folder / "values")
        machine = LocalMachine("the cluster", {}, ())
        further: dict[str, Any] = {"connections": servers.urls, "stall_limit_s": STALL_LIMIT_S, "released": released}
        yield PodRun(job, local, machine, folder / "run", Steps(), **further)


def run_to_the_end(run: PodRun, faults: Faults | None = None, *, failures_allowed: int = 0) -> Verdict:
    """Runs a job until its input is processed, stops it as a node that is drained does, and judges what it has written. A bounded run
    ends by itself.

    Args:
        run: the job's run.
        faults: what happens to it meanwhile; each must have happened.
        failures_allowed: how many failures of the driver are left to its pod, which starts it again.
    """
    assert run.released is not None
    run.faults = dict(faults or {})
    run.failures_allowed = failures_allowed
    if run.bounded:
        # It reads what is there when it starts.
        run.feed(run.records())
    with run.driver() as driver:
        if not run.bounded:
            run.feed(run.records())
        run.process(driver)
        assert not run.faults
        assert run.complete
        if run.bounded:
            run.released.wait_until_complete()
        else:
            run.released.scale(0)
            run.released.wait_until_gone("driver")
        expected = run.expectation()
        assert expected is not None
        return judge(run.outcome(expected), expected)


def delete_all(local: LocalEnvironment) -> None:
    """Deletes all topics, checkpoints and output."""
    admin = AdminClient({"bootstrap.servers": local.kafka.address})
    topics = [name for name in admin.list_topics(timeout=_ANSWER_S).topics if not name.startswith("__")]
    for deleted in admin.delete_topics(topics).values() if topics else ():
        deleted.result(_ANSWER_S)
    for bucket in (team_job.CHECKPOINTS, team_job.OUTPUT):
        # With their versions: moto lists folders in which all is marked as deleted, as S3 does not, and Spark refuses those for a new
        # checkpoint. Listed anew each time: a page begins where the one before it ended, which is deleted by then.
        while found := _versions(local.s3, bucket):
            assert not local.s3.delete_objects(Bucket=bucket, Delete={"Objects": found}).get("Errors")


def _versions(s3: S3Client, bucket: str) -> list[ObjectIdentifierTypeDef]:
    """Some versions and delete markers of a bucket; none if it has none."""
    page = s3.list_object_versions(Bucket=bucket)
    versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in versions]
