"""The Kafka of an environment."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.infra.address_plan import network
from penstock.infra.parts.access_ranges import refuse_most_of_the_internet
from penstock.infra.parts.part import Arn, DurationMs, MskArn, Part, RetentionDays, SecretArn
from penstock.jobs.configuration.kafka_access import WITH_SECRET, Security


def _cidr(cidr: str) -> str:
    """A range that has a single owner; the brokers have IPv4 addresses only."""
    refuse_most_of_the_internet(network(cidr), "the brokers")
    return cidr


class Kafka(Part):
    """The Kafka of the environment.

    Args:
        kind: a kind of MSK cluster, or ``external`` for one that is not part of the stacks.
        broker_type: such as ``kafka.m7g.large``; None: the cheapest that carries the jobs.
        brokers: number of brokers; None: the fewest that carry the jobs.
        replication: replicas of each partition.
        retention: of the topics, in ms.
        rack_aware: whether consumers read from the replica in their own zone.
        version: of Kafka, as MSK names it; None: the stacks' default.
        storage_gib: initial storage per broker; None: what the plans store, at least 100.
        max_storage_gib: limit of a broker's automatic storage expansion; None: four times the initial storage.
        bootstrap_servers: of an external one: ``host:port``, comma-separated.
        security: protocol of the clients of an external one, by default TLS; the stacks' own brokers use IAM over TLS.
        cluster_arn: of an external MSK cluster, whose clients use IAM; required with ``iam``.
        ca_file: file with the certificates in PEM of the CA of an external one; None: one that systems trust.
        secret: ARN of the secret in AWS Secrets Manager with user and password, or certificate and key, as JSON; required with
            ``sasl-scram``, ``sasl-plain`` and ``mtls``.
        key: ARN of the KMS key that the secret is encrypted with; None: AWS's own for secrets.
        client_cidrs: ranges that may reach the stacks' brokers in addition to the cluster's nodes, such as a runner that applies topics;
            empty: the VPC only. IAM authorizes requests in either case.
        monitoring: level of MSK's metrics in CloudWatch; those per partition cost extra.
        log_retention_days: of the brokers' logs.
        tiered_storage: whether old segments may be in MSK's low-cost tier, which a topic then requests; not yet part of the plan and the
            bill.
    """

    kind: Literal["standard", "express", "serverless", "external"] = "standard"
    broker_type: Annotated[str, Field(pattern=r"^(kafka|express)\.[a-z0-9]+\.[a-z0-9]+$")] | None = None
    brokers: Annotated[int, Field(ge=1, le=90)] | None = None
    replication: Annotated[int, Field(ge=1, le=5)] = 3
    retention: DurationMs = 86_400_000
    rack_aware: bool = False
    tiered_storage: bool = False
    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.(x|[0-9]+)(\.kraft|\.tiered)?$")] | None = None
    storage_gib: Annotated[int, Field(ge=1, le=16_384)] | None = None
    max_storage_gib: Annotated[int, Field(ge=1, le=16_384)] | None = None
    bootstrap_servers: Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})*$")] | None = None
    security: Literal["tls", "mtls", "plaintext", "iam", "sasl-scram", "sasl-plain"] | None = None
    cluster_arn: MskArn | None = None
    ca_file: str | None = None
    secret: SecretArn | None = None
    key: Arn | None = None
    log_retention_days: RetentionDays = 365
    client_cidrs: list[Annotated[str, AfterValidator(_cidr)]] = []
    monitoring: Literal["DEFAULT", "PER_BROKER", "PER_TOPIC_PER_BROKER", "PER_TOPIC_PER_PARTITION"] = "PER_TOPIC_PER_PARTITION"

    @property
    def client_security(self) -> Security:
        """The security protocol of the brokers' clients."""
        return (self.security or "tls") if self.kind == "external" else "iam"

    @model_validator(mode="after")
    def _type_of_the_kind(self) -> Self:
        family = {"standard": "kafka.", "express": "express."}.get(self.kind)
        if self.broker_type is not None and family is not None and not self.broker_type.startswith(family):
            raise ValueError(f"a broker type starting with {family} for kind: {self.kind}")
        return self

    @model_validator(mode="after")
    def _external_alone(self) -> Self:
        if self.kind == "external" and self.client_cidrs:
            raise ValueError("no clientCidrs with kind: external: access to external brokers is not managed here")
        if self.kind != "external" and self.secret is not None:
            raise ValueError(f"secret only with kind: external; {self.kind} brokers are created by the stacks and use IAM")
        if self.kind != "external" and (self.bootstrap_servers is not None or self.security is not None):
            raise ValueError(
                f"bootstrapServers and security only with kind: external; {self.kind} brokers are created by the stacks and use IAM"
            )
        return self

    @model_validator(mode="after")
    def _cluster_of_iam(self) -> Self:
        if (self.security == "iam") != (self.cluster_arn is not None):
            raise ValueError("clusterArn with kind: external and security: iam, and only with them: rights on topics name the cluster")
        return self

    @model_validator(mode="after")
    def _secret_of_the_clients(self) -> Self:
        if (self.security in WITH_SECRET) != (self.secret is not None):
            raise ValueError("secret with security: sasl-scram, sasl-plain or mtls, and only with them")
        if self.ca_file is not None and (self.kind != "external" or self.security == "plaintext"):
            raise ValueError("caFile with kind: external and TLS, and only then: the stacks' brokers have certificates of Amazon's CA")
        if self.key is not None and self.secret is None:
            raise ValueError("key together with secret, and only then")
        return self

    @model_validator(mode="after")
    def _storage_grows(self) -> Self:
        if self.storage_gib is not None and self.max_storage_gib is not None and self.max_storage_gib < self.storage_gib:
            raise ValueError(f"maxStorageGib of at least storageGib, {self.storage_gib}: storage can only grow")
        return self
