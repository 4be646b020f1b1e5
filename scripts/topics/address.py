"""Bootstrap servers of an environment and how clients authenticate."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.jobs.configuration.kafka_access import MECHANISMS, KafkaAccess, Security
from penstock.scripts.topics.errors import KafkaClusterNotFound, NoBrokersNamed, NoSecretNamed

_BY_IAM = "BootstrapBrokerStringSaslIam"


def access(
    environment: Environment, brokers: str | None, security: Security | None, ca_file: str | None, secret: str | None = None
) -> KafkaAccess:
    """Return how to connect to an environment's brokers.

    Args:
        environment: the environment.
        brokers: bootstrap servers as ``host:port``, comma-separated, instead of the environment's; no request to AWS is made.
        security: security of their listener, instead of the environment's.
        ca_file: PEM file with the brokers' CA certificates.
        secret: ARN of the secret with user and password, instead of the environment's; read if the listener asks for them.

    Raises:
        NoSecretNamed: TOP-008.
        SecretUnusable: JOB-052.
        NoBrokersNamed: TOP-004.
        KafkaClusterNotFound: TOP-005.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021 from a request to MSK.
    """
    address = brokers or _address(environment)
    protocol = security or _security(environment)
    if protocol not in MECHANISMS:
        return KafkaAccess(address, protocol, environment.spec.region, ca_file)
    return _signed_in(
        environment, KafkaAccess(address, protocol, environment.spec.region, ca_file, secret or _secret(environment, protocol))
    )


def _secret(environment: Environment, security: Security) -> str:
    kafka = environment.spec.kafka
    if kafka is None or kafka.secret is None:
        need = f"a secret in AWS Secrets Manager with user and password, for {security}: spec.kafka.secret, or --secret"
        raise NoSecretNamed(path=f"environment {environment.name}", need=need, fix="--secret ARN")
    return kafka.secret


def _signed_in(environment: Environment, reached: KafkaAccess) -> KafkaAccess:
    from penstock.jobs.kafka.credentials import signed_in
    from penstock.scripts.provisioning.aws_access import AwsAccess

    # arn:aws:secretsmanager:<region>:<account>:secret:<name>
    region = (reached.secret or "").split(":")[3]
    return signed_in(reached, AwsAccess(environment).client("secretsmanager", region))


def _security(environment: Environment) -> Security:
    kafka = environment.spec.kafka
    if kafka is None or environment.spec.endpoints is not None:
        # With an emulated AWS, the broker runs on this machine.
        return "plaintext"
    return kafka.client_security


def _address(environment: Environment) -> str:
    kafka = environment.spec.kafka
    if kafka is None or (kafka.kind == "external" and kafka.bootstrap_servers is None):
        need = "spec.kafka with brokers, or --brokers"
        raise NoBrokersNamed(path=f"environment {environment.name}", need=need, fix="--brokers HOST:PORT")
    if kafka.bootstrap_servers is not None and kafka.kind == "external":
        return kafka.bootstrap_servers
    return _of_msk(environment)


def _of_msk(environment: Environment) -> str:
    from penstock.scripts.provisioning.aws_access import AwsAccess, translated  # boto3 takes half a second, and only this needs it

    name, region = environment.prefix, environment.spec.region
    with translated(f"MSK in {region}"):
        client = AwsAccess(environment).client("kafka")
        pages = client.get_paginator("list_clusters_v2").paginate(ClusterNameFilter=name)
        # ListClustersV2 filters by prefix.
        clusters = [cluster for page in pages for cluster in page["ClusterInfoList"] if cluster["ClusterName"] == name]
        if not clusters:
            need = f"a cluster {name} in {region}, as created by the kafka stack"
            raise KafkaClusterNotFound(
                path=name, given="no MSK cluster has this name", need=need, fix=f"penstock deploy {environment.name}"
            )
        answer = client.get_bootstrap_brokers(ClusterArn=clusters[0]["ClusterArn"])
    if _BY_IAM not in answer:
        given = f"its state is {clusters[0]['State']}, without brokers for IAM"
        need = "an ACTIVE cluster with IAM authentication"
        raise KafkaClusterNotFound(path=name, given=given, need=need, fix="wait until it is ACTIVE, and check its authentication")
    return str(answer[_BY_IAM])
