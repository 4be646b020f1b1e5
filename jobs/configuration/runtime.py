"""What a driver is started with: the spec, the plan's Spark configuration, and what the environment adds."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from penstock.jobs.configuration.kafka_access import KafkaAccess, Security
from penstock.sizing.load.progress_timeout import DEFAULT_S

# What a pod passes to its driver beside the file, because it is unknown before there is a pod: its own name and uid, the file that the
# driver keeps while its pod is ready, and the one in which kubelet finds why its container has ended. What restarts a driver outside of
# Kubernetes passes a uid of its own, and no name.
POD_NAME_VARIABLE = "PENSTOCK_POD_NAME"
POD_UID_VARIABLE = "PENSTOCK_POD_UID"
READY_FILE_VARIABLE = "PENSTOCK_READY_FILE"
# Ours: code that fails has failed by then, and what needs a node has had it. Helm waits this much longer.
READY_AFTER_S = 300.0
TERMINATION_FILE_VARIABLE = "PENSTOCK_TERMINATION_FILE"
# The image of its container, which is part of what a generation of the job is.
IMAGE_VARIABLE = "PENSTOCK_IMAGE"
# User and password for the brokers, from what has read the secret for a driver whose own AWS is an emulated one.
KAFKA_USER_VARIABLE = "PENSTOCK_KAFKA_USER"
KAFKA_PASSWORD_VARIABLE = "PENSTOCK_KAFKA_PASSWORD"
# Certificate and key, likewise.
KAFKA_CERTIFICATE_VARIABLE = "PENSTOCK_KAFKA_CERTIFICATE"
KAFKA_KEY_VARIABLE = "PENSTOCK_KAFKA_KEY"
# Label of all objects of a job in a cluster, with its name; Spark gives it to the executors' pods.
JOB_LABEL = "penstock.dev/job"


class RuntimeConfiguration(BaseModel):
    """The driver's configuration file, written by whatever deploys it.

    Args:
        spec: path of the job spec.
        parallelism: of the environment, in place of the spec's; None: the spec's own, also where its text has that of the environment.
        app_path: folders in which the app's module is looked up, in this order.
        package_path: folders with the app's own Python packages, at the same place for the driver and the executors.
        master: Spark's master, such as ``local[4]`` or ``k8s://...``.
        brokers: ``host:port``, several separated by commas.
        kafka_security: of their listener.
        kafka_secret: ARN of the secret in AWS Secrets Manager with the clients' credentials, for a listener that asks for them.
        region: AWS region of the brokers, required for IAM authentication.
        kafka_ca_file: file with CA certificates in PEM for the brokers' certificates; None: those that the system trusts.
        kafka_ca: CA certificates in PEM, instead of a file.
        job_folder: ``s3a://bucket/folder`` with the checkpoints of the job and the records of its generations.
        plan: hash of the job's plan; another one begins another generation.
        output_bucket: where the spec's file sinks write.
        connections: name -> URL of databases and endpoints; with credentials only on a developer's machine.
        close_when_idle: whether sinks close what they hold open as soon as all input is read, for a run whose result is checked then.
        report_open_windows: whether events say how many windows are open, for a run that ends when the clock has closed them.
        lease_s: seconds without a renewal after which another driver may take over the checkpoint, 3 or more; see
            `penstock.jobs.storage.lease`.
        progress_timeout_s: seconds without progress after which a query hangs and the driver ends; see `penstock.jobs.driver.watch`.
        secrets: name -> ARN of the secret in AWS Secrets Manager with the credentials of that connection.
        max_offsets_per_trigger: how many records a micro-batch reads at most, of all topics together, where a source sets no limit; None:
            no limit.
        spark_conf: the plan's Spark configuration with what the environment adds.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    spec: str
    parallelism: int | None = Field(default=None, exclude_if=lambda value: value is None)
    app_path: tuple[str, ...] = ()
    package_path: tuple[str, ...] = ()
    master: str
    brokers: str
    kafka_security: Security = "plaintext"
    kafka_secret: str | None = None
    region: str | None = None
    kafka_ca_file: str | None = None
    kafka_ca: str | None = Field(default=None, exclude_if=lambda value: value is None)
    job_folder: str
    plan: str = ""
    output_bucket: str
    connections: dict[str, str] = Field(default_factory=dict, repr=False)
    close_when_idle: bool = False
    report_open_windows: bool = False
    lease_s: float = Field(default=30, ge=3)
    progress_timeout_s: float = Field(default=DEFAULT_S, gt=0)
    secrets: dict[str, str] = Field(default_factory=dict)
    max_offsets_per_trigger: int | None = Field(default=None, ge=1)
    spark_conf: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        # Invalid access settings fail here, not at the first record.
        _ = self.kafka
        return self

    @property
    def kafka(self) -> KafkaAccess:
        """How the brokers are reached; the secret is not read."""
        return KafkaAccess(self.brokers, self.kafka_security, self.region, self.kafka_ca_file, self.kafka_secret, ca=self.kafka_ca)

    @classmethod
    def read(cls, path: Path) -> RuntimeConfiguration:
        """Reads the file. Raises pydantic's ValidationError: a program wrote it, so an invalid one is a bug."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

    def write(self, path: Path) -> None:
        """Writes the file, readable only by this user."""
        path.touch(0o600)
        path.write_text(self.model_dump_json(by_alias=True, indent=2), encoding="utf-8")
