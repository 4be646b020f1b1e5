"""A job of an environment as a process of this machine: what its driver is started with, and how it is known whether it may start again."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.job_connections import connections_of, refuse_unknown_connections, secrets, urls
from penstock.infra.manifests.driver_pod import stop_within_s
from penstock.infra.plans import JobPlan
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.configuration.progress_timeout import progress_timeout_s
from penstock.jobs.configuration.runtime import POD_UID_VARIABLE, RuntimeConfiguration
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.local import class_data, driver_conf
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.machine import LocalMachine, cut
from penstock.scripts.operations.deployed_job import DeployedJob
from penstock.sizing.errors import PenstockError

# In the folder: the log of all drivers, and what the one that runs needs.
LOG, _WORK = "driver.log", "work"
# Source: AWS SDK for Java 2.x, "Default credentials provider chain". That of S3A by default knows no profiles.
_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


class SupervisedJob:
    """A job whose driver runs on this machine.

    Args:
        environment: of the job.
        planned: the job with its plan.
        brokers: how they are reached.
        packages: the app's own, installed.
        folder: of the driver's log and files; exists.

    Raises:
        PenstockError: USE-001, DEP-002, TOOL-020, TOOL-030, INF-070, INF-071.
    """

    def __init__(self, environment: Environment, planned: JobPlan, brokers: KafkaAccess, packages: InstalledPackages, folder: Path) -> None:
        refuse_unknown_connections([planned], environment)
        self._environment = environment
        self._planned = planned
        self._brokers = brokers
        self._packages = packages
        self._folder = folder
        self._deployed = DeployedJob(environment, planned.name)
        # As a pod's uid, it is the same for all drivers that one supervisor starts: each knows that the one before has ended, and that it
        # was killed if it has not recorded how.
        self._uid = f"supervisor-{uuid.uuid4()}"

    @property
    def machine(self) -> LocalMachine:
        """The plan scaled down to this machine."""
        return cut(self._planned.plan)

    def forgive(self) -> None:
        """Has the failures so far count no more.

        Raises:
            PenstockError: JOB-009, JOB-082.
        """
        self._deployed.runs.change(lambda runs: runs.resumed())

    def why_over(self, since: datetime) -> str | None:
        """Why the job is not started again, by the runs that its drivers have recorded; None if it is, or if that is not known.

        Args:
            since: the start of the driver that has failed, by this machine's clock. One that has recorded nothing decides nothing.
        """
        try:
            status = self._deployed.status()
        except PenstockError:
            # The next driver decides.
            return None
        if status.state != "failed" or status.since is None or status.since < since:
            return None
        return status.cause

    @contextmanager
    def driver(self) -> Iterator[LocalDriver]:
        """A running driver, in an empty folder; its process group is gone afterwards.

        Raises:
            CommandNotStarted: RUN-001.
            OSError: its folder can't be written.
        """
        work = self._folder / _WORK
        # One that was left by a supervisor that was killed.
        shutil.rmtree(work, ignore_errors=True)
        scratch = work / "scratch"
        scratch.mkdir(parents=True)
        configuration, grace_s = self._configuration(scratch), stop_within_s(self._trigger_s)
        try:
            with LocalDriver(configuration, folder=work, log=self._folder / LOG, environment=self._variables(), grace_s=grace_s) as driver:
                yield driver
        finally:
            shutil.rmtree(work, ignore_errors=True)

    @property
    def _trigger_s(self) -> float | None:
        trigger = self._planned.spec.job.spec.trigger
        return None if trigger == "availableNow" else trigger / 1000

    def _configuration(self, scratch: Path) -> RuntimeConfiguration:
        spec, plan, buckets = self._planned.spec, self._planned.plan, self._environment.spec.buckets
        connections = connections_of(spec, self._environment)
        app_path = (spec.path.parent, *map(Path, self._environment.spec.app_path))
        return RuntimeConfiguration(
            spec=str(spec.path.resolve()),
            parallelism=spec.overriding_parallelism,
            app_path=tuple(str(folder.resolve()) for folder in app_path),
            package_path=tuple(str(folder) for folder in self._packages.path),
            master=self.machine.master,
            brokers=self._brokers.address,
            kafka_security=self._brokers.security,
            kafka_secret=self._brokers.secret,
            region=self._environment.spec.region,
            kafka_ca_file=self._brokers.ca_file,
            kafka_ca=self._brokers.ca,
            job_folder=f"s3a://{buckets.checkpoints}/{self._planned.name}",
            plan=plan_hash(plan),
            output_bucket=buckets.output,
            connections=urls(connections),
            progress_timeout_s=progress_timeout_s(spec.job.spec, plan),
            secrets=secrets(connections),
            max_offsets_per_trigger=plan.max_offsets_per_trigger,
            spark_conf={**plan.spark_conf, **self._conf(scratch), **self.machine.spark_conf},
        )

    def _conf(self, scratch: Path) -> dict[str, str]:
        spec = self._environment.spec
        return {
            **driver_conf.of_machine(scratch.resolve(), self._packages.jars),
            **driver_conf.of_s3(spec.region, spec.endpoints.of("s3") if spec.endpoints else None),
            "spark.hadoop.fs.s3a.aws.credentials.provider": _CREDENTIALS,
            # A JVM out of memory is restarted rather than left in an unknown state. Apart from the extra options, which a spec may have.
            "spark.driver.defaultJavaOptions": f'{class_data.options()} -XX:+ExitOnOutOfMemoryError "-Djava.io.tmpdir={scratch.resolve()}"',
        }

    def _variables(self) -> dict[str, str]:
        region, endpoints = self._environment.spec.region, self._environment.spec.endpoints
        # Those of an emulated AWS have no endpoint: Terraform has it in its stacks.
        emulated = {} if endpoints is None else {"AWS_ENDPOINT_URL": endpoints.aws, "AWS_ENDPOINT_URL_S3": endpoints.of("s3")}
        return {**self._deployed.aws.variables, "AWS_DEFAULT_REGION": region, **emulated, POD_UID_VARIABLE: self._uid}
