"""A job as it is deployed to a cluster, and the names of its objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.infra.app_packages import AppPackages
from penstock.infra.parts.nodes import PodPlace
from penstock.jobs.configuration.kafka_access import Security
from penstock.jobs.configuration.runtime import JOB_LABEL
from penstock.sizing.load.progress_timeout import DEFAULT_S
from penstock.sizing.planned import Plan

Component = Literal["driver", "executor"]

# The same ports in every pod, so that a network policy can name them. Source: Spark, the defaults of the driver's service in cluster
# mode (7078, 7079) and of spark.ui.port.
DRIVER_PORT = 7078
BLOCK_MANAGER_PORT = 7079
UI_PORT = 4040

COMPONENT_LABEL = "app.kubernetes.io/component"
# Where Prometheus and Fluent Bit run.
OBSERVABILITY_NAMESPACE = "observability"


@dataclass(frozen=True, kw_only=True)
class DeployedJob:
    """A job, its plan, and where it runs. Strings may be tokens of other stacks' values, known only when Terraform runs.

    Args:
        name: of the job, a spec's ``metadata.name``.
        spec_text: the text of the spec file.
        plan: of the job.
        image: of driver and executors, with its tag.
        brokers: ``host:port``, comma-separated.
        kafka_security: protocol of the Kafka clients.
        kafka_secret: ARN of the secret with the credentials of the Kafka clients; None: they have none.
        kafka_ca: CA certificates in PEM for the brokers' certificates; None: those that the image trusts.
        broker_ports: all ports of the brokers, sorted.
        job_folder: ``s3a://bucket/folder`` with the checkpoints of the job and the records of its generations.
        output_bucket: for its file sinks.
        region: AWS region of all of these.
        trigger_s: interval between micro-batches; None: a bounded run, which ends when it has read all available input.
        progress_timeout_s: see `penstock.jobs.configuration.runtime.RuntimeConfiguration`.
        driver: placement of the driver's pod.
        executor: placement of the executors' pods.
        zones: number of the environment's zones, over which executors may be spread.
        role_arn: the IAM role of its pods; None: they have none.
        packages: of the app, in addition to those of every job.
        schemas: name -> text of the files next to the spec: Avro schemas, and a SQL app.
        connections: name -> URL without credentials.
        secrets: name of a connection -> ARN of the secret with its credentials.
        connection_ports: ports of the connections, sorted.
    """

    name: str
    spec_text: str
    plan: Plan
    image: str
    brokers: str
    kafka_security: Security
    broker_ports: tuple[int, ...]
    job_folder: str
    output_bucket: str
    region: str
    trigger_s: float | None
    progress_timeout_s: float = DEFAULT_S
    driver: PodPlace = field(default_factory=PodPlace)
    executor: PodPlace = field(default_factory=PodPlace)
    zones: int = 1
    role_arn: str | None = None
    kafka_secret: str | None = None
    kafka_ca: str | None = None
    packages: AppPackages = field(default_factory=AppPackages)
    schemas: Mapping[str, str] = field(default_factory=dict)
    connections: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    connection_ports: tuple[int, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether it ends on its own."""
        return self.trigger_s is None

    @property
    def namespace(self) -> str:
        """The job's own namespace."""
        return namespace(self.name)

    @property
    def driver_name(self) -> str:
        """Name of the driver's controller and of its headless service."""
        return f"{self.name}-driver"

    @property
    def driver_host_name(self) -> str:
        """Name of the driver's pod in that service: a StatefulSet's name for its first pod."""
        return f"{self.driver_name}-0"

    @property
    def driver_address(self) -> str:
        """The address of the driver for executors, independent of its pod's current IP."""
        return f"{self.driver_host_name}.{self.driver_name}.{self.namespace}.svc"

    def service_account(self, component: Component) -> str:
        """The service account of the driver or of the executors."""
        return service_account(self.name, component)

    def labels(self, component: Component | None = None) -> dict[str, str]:
        """The labels of every object of the job.

        Args:
            component: the component of the object; None: the whole job.
        """
        labels = {
            "app.kubernetes.io/name": "penstock-job",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/part-of": "penstock",
            JOB_LABEL: self.name,
        }
        return labels if component is None else {**labels, COMPONENT_LABEL: component}

    def selector(self, component: Component) -> dict[str, str]:
        """Labels that select the pods of the driver, or of the executors, among all pods of the namespace."""
        return {JOB_LABEL: self.name, COMPONENT_LABEL: component}


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
