"""A job as it is deployed to a cluster, what it has in common with a session of jobs, and the names of their objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.infra.app_packages import AppPackages
from penstock.infra.parts.nodes import PodPlace
from penstock.jobs.configuration.kafka_access import Security
from penstock.jobs.configuration.runtime import JOB_LABEL
from penstock.sizing.load.progress_timeout import DEFAULT_S
from penstock.sizing.plan.workload import Workload
from penstock.sizing.planned import Plan

Component = Literal["driver", "executor"]

# The same ports in every pod, so that a network policy can name them. Source: Spark, the defaults of the driver's service in cluster
# mode (7078, 7079) and of spark.ui.port.
DRIVER_PORT = 7078
BLOCK_MANAGER_PORT = 7079
UI_PORT = 4040

COMPONENT_LABEL = "app.kubernetes.io/component"
# The job, or the session, that an object is about; of a session's checks the job that is checked.
INSTANCE_LABEL = "app.kubernetes.io/instance"
# Of all objects of a session, with its name, in addition to `JOB_LABEL`, which has the session's name too.
SESSION_LABEL = "penstock.dev/session"
# Where Prometheus and Fluent Bit run.
OBSERVABILITY_NAMESPACE = "observability"


@dataclass(frozen=True, kw_only=True)
class DeployedWorkload:
    """A driver with its executors, their plan, and where they run. Strings may be tokens of other stacks' values, known only when Terraform
    runs.

    Args:
        name: of the job, a spec's ``metadata.name``, or of the session.
        plan: of the pods.
        image: of driver and executors, with its tag.
        region: AWS region of brokers, buckets and secrets.
        broker_ports: all ports of the brokers, sorted.
        driver: placement of the driver's pod.
        executor: placement of the executors' pods.
        zones: number of the environment's zones, over which executors may be spread.
        role_arn: the IAM role of its pods; None: they have none.
        connection_ports: ports of the connections, sorted.
    """

    name: str
    plan: Workload
    image: str
    region: str
    broker_ports: tuple[int, ...]
    driver: PodPlace = field(default_factory=PodPlace)
    executor: PodPlace = field(default_factory=PodPlace)
    zones: int = 1
    role_arn: str | None = None
    connection_ports: tuple[int, ...] = ()

    @property
    def owner(self) -> str:
        """What the namespace and the objects in it go by."""
        return self.name

    @property
    def session(self) -> str | None:
        """The session that the namespace is of; None: it is a job's."""
        return None

    @property
    def jars(self) -> Mapping[str, str]:
        """Spark's setting for the jars of the apps, in addition to those of every job."""
        return {}

    @property
    def namespace(self) -> str:
        """The namespace of its own."""
        return namespace(self.owner)

    @property
    def driver_name(self) -> str:
        """Name of the driver's controller and of its headless service."""
        return driver_name(self.owner)

    @property
    def driver_host_name(self) -> str:
        """Name of the driver's pod in that service: a StatefulSet's name for its first pod."""
        return driver_host_name(self.owner)

    @property
    def driver_address(self) -> str:
        """The address of the driver for executors, independent of its pod's current IP."""
        return driver_address(self.owner)

    def service_account(self, component: Component) -> str:
        """The service account of the driver or of the executors."""
        return service_account(self.owner, component)

    def labels(self, component: Component | None = None) -> dict[str, str]:
        """The labels of every object of the job.

        Args:
            component: the component of the object; None: the whole job.
        """
        labels = {
            "app.kubernetes.io/name": "penstock-job",
            INSTANCE_LABEL: self.name,
            "app.kubernetes.io/part-of": "penstock",
            JOB_LABEL: self.owner,
            **({} if self.session is None else {SESSION_LABEL: self.session}),
        }
        return labels if component is None else {**labels, COMPONENT_LABEL: component}

    def selector(self, component: Component) -> dict[str, str]:
        """Labels that select the pods of the driver, or of the executors, among all pods of the namespace."""
        return {JOB_LABEL: self.owner, COMPONENT_LABEL: component}


@dataclass(frozen=True, kw_only=True)
class DeployedJob(DeployedWorkload):
    """A job, its plan, and where it runs; the fields of `DeployedWorkload` are those of a driver of its own.

    Args:
        plan: of the job.
        spec_text: the text of the spec file.
        brokers: ``host:port``, comma-separated.
        kafka_security: protocol of the Kafka clients.
        kafka_secret: ARN of the secret with the credentials of the Kafka clients; None: they have none.
        kafka_ca: CA certificates in PEM for the brokers' certificates; None: those that the image trusts.
        job_folder: ``s3a://bucket/folder`` with the checkpoints of the job and the records of its generations.
        output_bucket: for its file sinks.
        trigger_s: interval between micro-batches; None: a bounded run, which ends when it has read all available input.
        progress_timeout_s: see `penstock.jobs.configuration.runtime.RuntimeConfiguration`.
        packages: of the app, in addition to those of every job.
        schemas: name -> text of the files next to the spec: Avro schemas, and a SQL app.
        connections: name -> URL without credentials.
        secrets: name of a connection -> ARN of the secret with its credentials.
        in_session: the session in whose namespace and driver it runs; None: it has its own.
    """

    plan: Plan
    spec_text: str
    brokers: str
    kafka_security: Security
    job_folder: str
    output_bucket: str
    trigger_s: float | None
    progress_timeout_s: float = DEFAULT_S
    kafka_secret: str | None = None
    kafka_ca: str | None = None
    packages: AppPackages = field(default_factory=AppPackages)
    schemas: Mapping[str, str] = field(default_factory=dict)
    connections: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    in_session: str | None = None

    @property
    def owner(self) -> str:
        """What the namespace and the objects in it go by."""
        return self.in_session or self.name

    @property
    def session(self) -> str | None:
        """The session that the namespace is of; None: it is the job's own."""
        return self.in_session

    @property
    def jars(self) -> Mapping[str, str]:
        """Spark's setting for the jars of the app, in addition to those of every job."""
        return self.packages.spark_conf

    @property
    def bounded(self) -> bool:
        """Whether it ends on its own."""
        return self.trigger_s is None


def namespace(job: str) -> str:
    """The namespace of a job; its prefix keeps a job called ``default`` or ``kube-system`` out of those namespaces.

    Args:
        job: its name, at most 45 characters, so that the namespace fits the 63 of a label.
    """
    return f"job-{job}"


def service_account(job: str, component: Component) -> str:
    """The service account of a job's driver or of its executors; their pod identities are associated with these.

    Args:
        job: its name.
        component: driver or executor.
    """
    return f"{job}-{component}"


def driver_name(job: str) -> str:
    """Name of a driver's controller and of its headless service.

    Args:
        job: name of the job, or of the session.
    """
    return f"{job}-driver"


def driver_host_name(job: str) -> str:
    """Name of a driver's pod: a StatefulSet's name for its first pod.

    Args:
        job: name of the job, or of the session.
    """
    return f"{driver_name(job)}-0"


def driver_address(job: str) -> str:
    """The address of a driver in the cluster's DNS, independent of its pod's current IP.

    Args:
        job: name of the job, or of the session.
    """
    return f"{driver_host_name(job)}.{driver_name(job)}.{namespace(job)}.svc"
