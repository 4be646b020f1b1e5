"""Bootstrap servers of an environment and how clients authenticate."""

from __future__ import annotations

from penstock.infra.broker_ca import broker_ca
from penstock.infra.environment import Environment
from penstock.jobs.configuration.kafka_access import WITH_SECRET, KafkaAccess, Security
from penstock.scripts.topics.errors import NoBrokersNamed, NoSecretNamed
from penstock.scripts.topics.msk_cluster import bootstrap, find


def access(
    environment: Environment, brokers: str | None, security: Security | None, ca_file: str | None, secret: str | None = None
) -> KafkaAccess:
    """Return how to connect to an environment's brokers.

    Args:
        environment: the environment.
        brokers: bootstrap servers as ``host:port``, comma-separated, instead of the environment's; no request to AWS is made.
        security: security of their listener, instead of the environment's.
        ca_file: PEM file with the brokers' CA certificates, instead of the environment's.
        secret: ARN of the secret with the client's credentials, instead of the environment's; read if the listener asks for them.

    Raises:
        NoSecretNamed: TOP-008.
        SecretUnusable: JOB-052.
        NoBrokersNamed: TOP-004.
        KafkaClusterNotFound: TOP-005.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021 from a request to MSK.
    """
    address = brokers or _address(environment)
    protocol = security or _security(environment)
    own_secret = (secret or _secret(environment, protocol)) if protocol in WITH_SECRET else None
    ca = None if ca_file else broker_ca(environment)
    reached = KafkaAccess(address, protocol, environment.spec.region, ca_file, own_secret, ca=ca)
    return reached if own_secret is None else _signed_in(environment, reached)


def access_of_pods(environment: Environment) -> KafkaAccess:
    """Return how pods of an environment connect to its brokers; their secret is not read.

    Args:
        environment: the environment.

    Raises:
        PenstockError: as `access`.
    """
    address, protocol = _address(environment), _security(environment)
    secret = _secret(environment, protocol) if protocol in WITH_SECRET else None
    return KafkaAccess(address, protocol, environment.spec.region, None, secret, ca=broker_ca(environment))


def _secret(environment: Environment, security: Security) -> str:
    kafka = environment.spec.kafka
    if kafka is None or kafka.secret is None:
        need = f"a secret in AWS Secrets Manager with the client's credentials, for {security}: spec.kafka.secret, or --secret"
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

    with translated(f"MSK in {environment.spec.region}"):
        client = AwsAccess(environment).client("kafka")
        return bootstrap(find(environment, client), client)
