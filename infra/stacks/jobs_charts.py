"""The jobs-charts stack: the jobs themselves, one release each."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.app_archive import AppZip, app_zip
from penstock.infra.app_packages import app_packages
from penstock.infra.aws_bindings import aws
from penstock.infra.broker_ca import broker_ca
from penstock.infra.constructs.charts_stack import RELEASES_NAMESPACE, ChartsStack, Cluster
from penstock.infra.constructs.local_chart import DEFAULT_TIMEOUT_S, LocalChart
from penstock.infra.constructs.provider import provider
from penstock.infra.environment import Environment
from penstock.infra.errors import SettingOfDeployment
from penstock.infra.image_tag import image_tags
from penstock.infra.job_connections import connections_of, ports, refuse_unknown_connections, secrets, urls
from penstock.infra.manifests.client_mode_conf import deployment_conf, owned_conf
from penstock.infra.manifests.deployed_job import DeployedJob, DeployedWorkload
from penstock.infra.manifests.deployed_session import DeployedSession
from penstock.infra.manifests.driver_pod import stop_s
from penstock.infra.manifests.job import job_manifests
from penstock.infra.manifests.session import session_manifests, session_stop_s
from penstock.infra.manifests.spark_application import operated_manifests
from penstock.infra.manifests.upgrade_check import upgrade_check
from penstock.infra.parts.nodes import PodPlaces
from penstock.infra.plans import EnvironmentPlans, JobPlan, SessionOfJobs
from penstock.infra.session_packages import image_faults, jar_faults
from penstock.infra.stacks.jobs import BROKER_PORTS
from penstock.jobs.configuration.kafka_access import Security
from penstock.jobs.configuration.progress_timeout import progress_timeout_s
from penstock.jobs.configuration.runtime import READY_AFTER_S
from penstock.jobs.configuration.session import AppArchive
from penstock.jobs.document import dotted
from penstock.jobs.spec.app_module import sql_beside
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.sizing.errors import PenstockError, raise_all

STACK = "jobs-charts"


class Checkpoints(Protocol):
    """The outputs of the checkpoints stack that this stack uses."""

    @property
    def checkpoints_bucket(self) -> str:
        """Name of the bucket of the checkpoints."""

    @property
    def output_bucket(self) -> str:
        """Name of the bucket of the output."""


class Kafka(Protocol):
    """The outputs of the kafka stack that this stack uses."""

    @property
    def bootstrap_brokers(self) -> str:
        """``host:port``, comma-separated."""

    @property
    def security(self) -> Security:
        """The security protocol of the brokers' clients."""


class Registry(Protocol):
    """The outputs of the registry stack that this stack uses."""

    @property
    def repository_url(self) -> str:
        """Host and name, without a tag."""


class Jobs(Protocol):
    """The outputs of the jobs stack that this stack uses."""

    @property
    def role_arns(self) -> Mapping[str, str]:
        """Job, or session -> the role of its pods."""


class JobsChartsStack(ChartsStack):
    """Each job with its namespace, in its own release: one that fails to start does not affect the others.

    Args:
        scope: the app.
        environment: the environment of the stack, with a cluster.
        plans: of the jobs.
        cluster: target of the releases.
        checkpoints: buckets of the jobs.
        kafka: brokers of the jobs.
        registry: of their image.
        jobs: their roles.

    Raises:
        PenstockError: INF-050, INF-052, INF-053, INF-070, INF-071 and INF-085 to INF-087; several are raised as `Faults`.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        plans: EnvironmentPlans,
        cluster: Cluster,
        checkpoints: Checkpoints,
        kafka: Kafka,
        registry: Registry,
        jobs: Jobs,
    ) -> None:
        super().__init__(scope, STACK, environment, cluster)
        spec = environment.spec
        assert spec.eks is not None and spec.nodes is not None
        refuse_unknown_connections(plans.jobs, environment)
        tags = image_tags(environment, [job.name for job in plans.jobs])
        raise_all(fault for one in plans.sessions for fault in _session_faults(environment, plans, one, tags))
        images = {job: f"{registry.repository_url}:{tag}" for job, tag in tags.items()}
        deployed = {job.name: _deployed(job, environment, spec.nodes.pods, images[job.name], checkpoints, kafka) for job in plans.jobs}
        apart = [replace(deployed[job.name], role_arn=jobs.role_arns[job.name]) for job in plans.apart]
        owned, manifests = (deployment_conf, operated_manifests) if spec.eks.spark_operator else (owned_conf, job_manifests)
        raise_all(fault for job in plans.jobs for fault in setting_faults(job, owned(deployed[job.name])))
        for job in apart:
            self._release(job, [*manifests(job), *upgrade_check(job)], stop_s(job))
        for one in plans.sessions:
            self._session(plans, one, deployed, checkpoints, jobs.role_arns[one.name])

    def _session(
        self, plans: EnvironmentPlans, one: SessionOfJobs, deployed: Mapping[str, DeployedJob], checkpoints: Checkpoints, role_arn: str
    ) -> None:
        """The release of a session, after the archives of its apps."""
        jobs = plans.jobs_of(one)
        zips = {job.name: app_zip(job.spec, [Path(folder) for folder in self.environment.spec.app_path]) for job in jobs}
        archives = {job: self._archive(job, app, checkpoints) for job, app in zips.items() if app is not None}
        session = _deployed_session(one, [deployed[job.name] for job in jobs], role_arn, {job: made for job, (made, _) in archives.items()})
        checks = [object_ for job in session.jobs for object_ in upgrade_check(job, session.archives.get(job.name))]
        objects = [object_ for _, object_ in archives.values()]
        self._release(session, [*session_manifests(session), *checks], session_stop_s(session), objects)

    def _archive(self, job: str, app: AppZip, checkpoints: Checkpoints) -> tuple[AppArchive, Any]:
        """An app's archive, which is there before the release that names it, and goes after the release that no longer does."""
        if self.node.try_find_child("aws") is None:
            provider(self, self.environment)
        archived = aws.s3_object.S3Object(
            self,
            f"app-{job}",
            bucket=checkpoints.checkpoints_bucket,
            key=app.key(job),
            content_base64=base64.b64encode(app.content).decode(),
            lifecycle=TerraformResourceLifecycle(create_before_destroy=True),
        )
        # An object has ten tags at most, and an environment may have more.
        archived.add_override("override_provider", {"default_tags": {"tags": {}}})
        return AppArchive(uri=f"s3a://{checkpoints.checkpoints_bucket}/{app.key(job)}", sha256=app.sha256), archived

    def _release(self, job: DeployedWorkload, contents: list[dict[str, Any]], stop_s: int, depends_on: Sequence[Any] = ()) -> None:
        # The running driver gets its time to stop before the next one may start, and that one its time to show that it works.
        timeout_s = DEFAULT_TIMEOUT_S + stop_s + int(READY_AFTER_S)
        name = job.namespace
        LocalChart(
            self, name, name=name, namespace=RELEASES_NAMESPACE, manifests=contents, timeout_s=timeout_s, depends_on=list(depends_on)
        )


def _session_faults(environment: Environment, plans: EnvironmentPlans, one: SessionOfJobs, tags: Mapping[str, str]) -> list[PenstockError]:
    jobs = plans.jobs_of(one)
    packages = {job.name: app_packages(job.spec) for job in jobs}
    return [
        *image_faults(environment, one.name, {job.name: tags[job.name] for job in jobs}),
        *jar_faults(environment, one.name, packages),
    ]


def _deployed_session(
    one: SessionOfJobs, jobs: Sequence[DeployedJob], role_arn: str, archives: Mapping[str, AppArchive]
) -> DeployedSession:
    members = tuple(replace(job, in_session=one.name, role_arn=role_arn) for job in jobs)
    first = members[0]
    return DeployedSession(
        name=one.name,
        plan=one.plan,
        jobs=members,
        archives=archives,
        image=first.image,
        region=first.region,
        broker_ports=tuple(sorted({port for job in members for port in job.broker_ports})),
        driver=first.driver,
        executor=first.executor,
        zones=first.zones,
        role_arn=role_arn,
        connection_ports=tuple(sorted({port for job in members for port in job.connection_ports})),
    )


def setting_faults(plan: JobPlan, owned: Mapping[str, str]) -> list[PenstockError]:
    """INF-052 for each setting of a spec to which the deployment gives another value.

    Args:
        plan: the job.
        owned: settings of the deployment.
    """
    faults: list[PenstockError] = []
    for key, value in owned.items():
        given = plan.targets.spark_conf.get(key)
        if given is not None and given != value:
            place = ("spec", "sparkConf", key)
            fault = SettingOfDeployment(
                path=dotted(place), given=given, need="no value: the deployment sets it", fix="remove it from sparkConf"
            )
            faults.append(plan.spec.document.locate(fault, place))
    return faults


def broker_ports(environment: Environment, security: Security) -> tuple[int, ...]:
    """The ports that the brokers listen on, sorted.

    Args:
        environment: the environment of the brokers; external ones are configured there.
        security: protocol of their clients.
    """
    kafka = environment.spec.kafka
    if kafka is not None and kafka.bootstrap_servers:
        return tuple(sorted({int(port) for port in re.findall(r":([0-9]+)(?:,|$)", kafka.bootstrap_servers)}))
    return (BROKER_PORTS[security],)


def _deployed(job: JobPlan, environment: Environment, places: PodPlaces, image: str, checkpoints: Checkpoints, kafka: Kafka) -> DeployedJob:
    connections = connections_of(job.spec, environment)
    network = environment.spec.network
    return DeployedJob(
        name=job.name,
        spec_text=job.spec.document.text,
        plan=job.plan,
        image=image,
        brokers=kafka.bootstrap_brokers,
        kafka_security=kafka.security,
        kafka_secret=environment.spec.kafka.secret if environment.spec.kafka else None,
        kafka_ca=broker_ca(environment),
        broker_ports=broker_ports(environment, kafka.security),
        job_folder=f"s3a://{checkpoints.checkpoints_bucket}/{job.name}",
        output_bucket=checkpoints.output_bucket,
        region=environment.spec.region,
        trigger_s=None if job.spec.job.spec.trigger == "availableNow" else job.spec.job.spec.trigger / 1000,
        progress_timeout_s=progress_timeout_s(job.spec.job.spec, job.plan),
        driver=places.driver,
        executor=places.executor,
        zones=1 if network is None else len(network.zones),
        packages=app_packages(job.spec),
        schemas={**avro_schemas(job.spec), **sql_beside(job.spec.job.spec.app, job.spec.path.parent)},
        connections=urls(connections),
        secrets=secrets(connections),
        connection_ports=ports(connections),
    )
