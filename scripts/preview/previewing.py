"""Runs the old and the new code of a job over the same offsets on this machine, and compares what they write.

Both are drivers as in production, in a bounded run. All that they write goes to an emulated S3 and to an endpoint of this process, which
end with the preview; the job's buckets and topics are only read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from penstock.infra.cluster import cluster
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.configuration.progress_timeout import progress_timeout_s
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.errors import SourcesDiffer, StateDiffers
from penstock.jobs.driver.rewind import instant
from penstock.jobs.kafka import credentials
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.savepoints.errors import StateExpired, StateNotRestored
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.manifest import SavedQuery
from penstock.jobs.savepoints.taking import Taken
from penstock.jobs.sources.ends import InputEnds
from penstock.jobs.spec import LocalConnection, SpecFile
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.generation import Generation
from penstock.jobs.targets import targets
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import RunTooLong
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.local import driver_conf
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.machine import cut
from penstock.scripts.local.run import STALL_LIMIT_S
from penstock.scripts.local.servers.starting import LocalServers
from penstock.scripts.operations.deployed_job import DeployedJob
from penstock.scripts.preview.collector import Collector
from penstock.scripts.preview.differences import OutputDifference, compared
from penstock.scripts.preview.scratch_spec import Scratch, outside, sinks_of, written
from penstock.scripts.preview.state_copy import StateCopy
from penstock.scripts.progress import Step, Steps
from penstock.scripts.provisioning.errors import NoStub
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_BUCKET, _SAVEPOINT = "penstock-preview", "preview"
_LOOK_S = 0.2
_OF_THE_STATE = (SourcesDiffer, StateDiffers, StateNotRestored)
# A run that is interrupted has nothing to finish.
_GRACE_S = 5


@dataclass(frozen=True)
class Code:
    """A version of a job.

    Args:
        name: ``before`` or ``after``.
        spec: of the job.
        app_path: folders with its modules, in this order.
    """

    name: str
    spec: SpecFile
    app_path: tuple[Path, ...]


@dataclass(frozen=True)
class Started:
    """Where both runs begin.

    Args:
        since_ms: the time that was asked for, in epoch milliseconds.
        queries: query -> the micro-batch whose state they go on with; empty without state.
        why_not: why they have no state; empty if they have, or if that was asked for.
    """

    since_ms: int
    queries: Mapping[str, SavedQuery]
    why_not: str = ""


@dataclass(frozen=True)
class Comparing:
    """How rows are compared.

    Args:
        keys: sink -> key columns, instead of the sink's own.
        ignored: columns that are not compared.
        examples: rows of each kind that are shown.
    """

    keys: Mapping[str, Sequence[str]]
    ignored: Sequence[str]
    examples: int

    def key(self, sink: str, spec: SpecFile) -> Sequence[str]:
        """The key of a sink's rows; empty for none."""
        if sink in self.keys:
            return self.keys[sink]
        own = spec.job.spec.sinks.get(sink)
        settings = (getattr(own, kind, None) for kind in ("kafka", "postgres", "redis"))
        return next((one.key or () for one in settings if one is not None), ())


@dataclass(frozen=True)
class Preview:
    """A preview of an upgrade.

    Args:
        job: that is deployed.
        generation: that runs.
        before: what runs.
        after: what is to run.
        kafka: how the brokers are reached.
        packages: the app's own.
        folder: an empty folder for everything that the runs write.
        steps: shows progress.
    """

    job: DeployedJob
    generation: Generation
    before: Code
    after: Code
    kafka: KafkaAccess
    packages: InstalledPackages
    folder: Path
    steps: Steps

    def run(self, since_ms: int, comparing: Comparing, *, with_state: bool) -> tuple[Started, list[OutputDifference]]:
        """Runs both versions and compares them.

        Args:
            since_ms: from when on, in epoch milliseconds.
            comparing: how rows are compared.
            with_state: whether they go on with the state of then.

        Raises:
            PenstockError: DEP-031, DEP-032, DEP-047, and what either driver fails with.
        """
        stubs = self._stubs()
        with ExitStack() as held:
            aws = held.enter_context(EmulatedAws(log=self.folder / "aws.log", region=self.job.environment.spec.region))
            s3 = _scratch_s3(aws)
            s3.create_bucket(Bucket=_BUCKET)
            started = self._started(since_ms, s3, with_state=with_state)
            for name, ends in self._ends().items():
                # As a driver would have decided them when its run began.
                Checkpoint(f"{self._job_folder(name)}/checkpoints/1", s3=s3).put_once("ends.json", ends.model_dump_json())
            collector = held.enter_context(Collector(self.folder))
            drivers = {code.name: held.enter_context(self._driver(code, started, aws, collector, stubs, held)) for code in self._codes}
            with self.steps.at("run", "starting the old and the new code") as step:
                _wait(drivers, aws, step)
            return started, list(self._compared(collector, comparing))

    @property
    def _codes(self) -> tuple[Code, Code]:
        return self.before, self.after

    def _job_folder(self, code: str) -> str:
        return f"s3a://{_BUCKET}/{code}/{self.job.name}"

    def _started(self, since_ms: int, s3: S3Client, *, with_state: bool) -> Started:
        if not with_state:
            return Started(since_ms, {})
        of = Taken(self.job.name, self.job.environment.name, by=None, generation=self.generation, until=_time(since_ms))
        checkpoint = self.job.records.folder.checkpoint(self.generation.checkpoint)
        target = Savepoints(f"s3a://{_BUCKET}/{self.job.name}", s3).of(_SAVEPOINT)
        try:
            with self.steps.at("state", f"copying {checkpoint.uri}") as step:
                queries = StateCopy(checkpoint, of, target, s3).take(step)
                step.said = f"{checkpoint.uri} is copied"
        except StateExpired as error:
            return Started(since_ms, {}, f"without state, of which the checkpoint has none of then: --since needs {error.need}")
        return Started(since_ms, queries)

    def _driver(
        self,
        code: Code,
        started: Started,
        aws: EmulatedAws,
        collector: Collector,
        stubs: Mapping[str, LocalConnection],
        held: ExitStack,
    ) -> LocalDriver:
        folder = self.folder / code.name
        savepoint = f"s3a://{_BUCKET}/{self.job.name}/savepoints/{_SAVEPOINT}" if started.queries else None
        spec = written(code.spec, Scratch(instant(started.since_ms), savepoint), folder, code.app_path)
        servers = held.enter_context(self._servers(stubs, folder / "servers"))
        urls = {name: collector.url(code.name, sink) for sink, name in sinks_of(code.spec).items()}
        configuration = self._configuration(code, spec, aws, {**servers.urls, **urls})
        return LocalDriver(configuration, folder=folder, log=folder / "driver.log", environment=self._variables(aws), grace_s=_GRACE_S)

    def _configuration(self, code: Code, spec: SpecFile, aws: EmulatedAws, connections: dict[str, str]) -> RuntimeConfiguration:
        planned, machine, folder = self._plan(code), cut(self._plan(code)), spec.path.parent
        conf = driver_conf.of_run(folder, aws.endpoint, self.job.environment.spec.region, self.packages.jars)
        return RuntimeConfiguration(
            spec=str(spec.path.resolve()),
            app_path=tuple(str(one.resolve()) for one in code.app_path),
            package_path=tuple(map(str, self.packages.path)),
            master=machine.master,
            brokers=self.kafka.address,
            kafka_security=self.kafka.security,
            kafka_secret=self.kafka.secret,
            region=self.kafka.region,
            kafka_ca_file=self.kafka.ca_file,
            kafka_ca=self.kafka.ca,
            job_folder=self._job_folder(code.name),
            output_bucket=_BUCKET,
            connections=connections,
            progress_timeout_s=progress_timeout_s(code.spec.job.spec, planned),
            # Of both that of the code before: micro-batches of other sizes would write other updates.
            max_offsets_per_trigger=self._plan(self.before).max_offsets_per_trigger,
            spark_conf=planned.spark_conf | conf | machine.spark_conf,
        )

    def _plan(self, code: Code) -> Plan:
        return plan(targets(code.spec, code.app_path), cluster(self.job.environment))

    def _variables(self, aws: EmulatedAws) -> dict[str, str]:
        """All of AWS is the emulated one. With IAM the keys are those of this machine, with which requests to the brokers are signed; a
        secret for the brokers has been read.
        """
        own = {**aws.environment(), "AWS_ENDPOINT_URL_S3": aws.endpoint, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false"}
        if self.kafka.security != "iam":
            return {**own, **credentials.variables(self.kafka)}
        key, secret, token = self.job.aws.s3_keys()
        return {**own, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, **({"AWS_SESSION_TOKEN": token} if token else {})}

    def _ends(self) -> dict[str, InputEnds]:
        """Code -> where its sources end: up to where the job has committed by now; a topic that it does not read yet, up to its end."""
        ends: dict[str, dict[int, int]] = {}
        for _, last in self.job.records.last_micro_batches(self.generation):
            for topic, positions in last.positions.items():
                known = ends.setdefault(topic, {})
                known.update({number: max(one.next, known.get(number, 0)) for number, one in positions.items()})
        found = {}
        with closing(Brokers(self.kafka, group=f"penstock.{self.job.name}")) as brokers:
            for code in self._codes:
                topics = brokers.ends(code.spec.job.spec.kafka_sources)
                for of_source in topics.values():
                    # A topic that both read ends in both where it ended for the first.
                    of_source.update({topic: ends.setdefault(topic, parts) for topic, parts in of_source.items()})
                found[code.name] = InputEnds(topics=topics)
        return found

    def _stubs(self) -> dict[str, LocalConnection]:
        """Connection -> the local server that answers instead, by the new spec.

        Raises:
            NoStub: DEP-047.
        """
        known = self.after.spec.job.spec.local.connections
        for code in self._codes:
            for one in outside(code.spec):
                if one.name not in known:
                    need = f"a local server for connection {one.name}, as penstock up starts it: nothing outside is called"
                    fix = f"connections: {{{one.name}: {{{one.kind}: module:function}}}} below spec.local"
                    raise code.spec.document.locate(NoStub(need=need, fix=fix), one.place)
        names = {one.name for code in self._codes for one in outside(code.spec)}
        return {name: server for name, server in known.items() if name in names}

    def _servers(self, stubs: Mapping[str, LocalConnection], folder: Path) -> LocalServers:
        file = self.after.spec
        job = file.job.spec.model_copy(update={"local": file.job.spec.local.model_copy(update={"connections": dict(stubs)})})
        spec = file.model_copy(update={"job": file.job.model_copy(update={"spec": job})})
        return LocalServers(spec, self.after.app_path, folder)

    def _compared(self, collector: Collector, comparing: Comparing) -> Iterator[OutputDifference]:
        for sink in dict.fromkeys(name for code in self._codes for name in code.spec.job.spec.sinks):
            spec = self.after.spec if sink in self.after.spec.job.spec.sinks else self.before.spec
            before, after = (collector.rows(code.name, sink) for code in self._codes)
            key = comparing.key(sink, spec)
            yield compared(sink, before, after, key, comparing.ignored, comparing.examples)


def _wait(drivers: Mapping[str, LocalDriver], aws: EmulatedAws, step: Step) -> None:
    """Waits until both runs have ended.

    Raises:
        PenstockError: RUN-015, or what a driver fails with, which says whose.
    """
    running, batches, news_s = dict(drivers), dict.fromkeys(drivers, 0), time.monotonic()
    while running:
        aws.check()
        for name, driver in list(running.items()):
            event = _next(name, driver)
            if event is None:
                continue
            news_s = time.monotonic()
            batches[name] += event["event"] == "committed"
            step.watch(", ".join(f"{one}: {count:,} micro-batches" for one, count in batches.items()))
            if event["event"] == "stopped":
                del running[name]
        if time.monotonic() - news_s > STALL_LIMIT_S:
            name = next(iter(running))
            raise RunTooLong(path=name, need=f"progress of the driver within {STALL_LIMIT_S} s", fix=f"check {running[name].log}")
    step.said = ", ".join(f"{one}: {count:,} micro-batches" for one, count in batches.items())


def _next(name: str, driver: LocalDriver) -> dict[str, Any] | None:
    try:
        return driver.next_event(_LOOK_S)
    except PenstockError as error:
        for one in error.errors:
            one.path = f"the code {name}, {one.path}" if one.path else f"the code {name}"
            if isinstance(one, _OF_THE_STATE):
                one.fix = f"{one.fix}; or preview both without it: --without-state"
        raise


def _scratch_s3(aws: EmulatedAws) -> S3Client:
    config = Config(s3={"addressing_style": "path"})
    return boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        # Elsewhere a bucket needs a location.
        region_name="us-east-1",
        config=config,
        aws_access_key_id="emulated",
        aws_secret_access_key="emulated",
    )


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
