"""How clients reach the brokers: the address, and how the two sides authenticate.

``plaintext``: neither authentication nor encryption, for a broker on this machine. ``tls``: authenticates the brokers and encrypts.
``iam``: TLS, and the client authenticates by its AWS identity, as MSK defines it. ``sasl-scram`` and ``sasl-plain``: TLS, and the client
authenticates by user and password, which it proves to know (SCRAM-SHA-512) or sends (PLAIN).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Security = Literal["plaintext", "tls", "iam", "sasl-scram", "sasl-plain"]

# Kafka's names of the same. Source: Apache Kafka, "Security".
PROTOCOLS: dict[Security, str] = {
    "plaintext": "PLAINTEXT",
    "tls": "SSL",
    "iam": "SASL_SSL",
    "sasl-scram": "SASL_SSL",
    "sasl-plain": "SASL_SSL",
}
# Those with user and password.
MECHANISMS: dict[Security, str] = {"sasl-scram": "SCRAM-SHA-512", "sasl-plain": "PLAIN"}
_LOGIN_MODULES: dict[Security, str] = {
    "sasl-scram": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "sasl-plain": "org.apache.kafka.common.security.plain.PlainLoginModule",
}
# Source: Amazon MSK Developer Guide, "Configure clients for IAM access control"; the classes are those of aws-msk-iam-auth.
_IAM = {
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}


@dataclass(frozen=True)
class Credentials:
    """User and password of a Kafka client. Neither is part of its text.

    Args:
        user: name of the user.
        password: of the user.
    """

    user: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True)
class KafkaAccess:
    """The brokers, and how to authenticate.

    Args:
        address: ``host:port``, several separated by commas.
        security: of the brokers' listener.
        region: AWS region of the cluster, for which signatures are valid; required with ``iam``.
        ca_file: CA certificates in PEM for the brokers' certificates; None: those that the system trusts.
        secret: ARN of the secret in AWS Secrets Manager with user and password; required with ``sasl-scram`` and ``sasl-plain``.
        credentials: what the secret has; None until it is read, see `penstock.jobs.kafka.credentials`.
    """

    address: str
    security: Security = "plaintext"
    region: str | None = None
    ca_file: str | None = None
    secret: str | None = None
    credentials: Credentials | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.security == "iam" and not self.region:
            raise ValueError("a region: IAM signatures are valid in a single region")
        if self.security in MECHANISMS and self.secret is None:
            raise ValueError(f"a secret with user and password, for {self.security}")

    @property
    def user_and_password(self) -> Credentials:
        """The credentials, which must have been read."""
        assert self.credentials is not None, "clients are made before the secret is read"
        return self.credentials

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink, whose Java clients sign with MSK's own library.

        With a password, Spark redacts the option in plans and logs by its value, which has the word password.
        """
        options = {"bootstrap.servers": self.address}
        if self.security != "plaintext":
            options["security.protocol"] = PROTOCOLS[self.security]
            if self.ca_file:
                options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        if self.security == "iam":
            options |= _IAM
        if self.security in MECHANISMS:
            options |= {"sasl.mechanism": MECHANISMS[self.security], "sasl.jaas.config": self._login()}
        return {f"kafka.{name}": value for name, value in options.items()}

    def _login(self) -> str:
        user, password = (_quoted(text) for text in (self.user_and_password.user, self.user_and_password.password))
        return f"{_LOGIN_MODULES[self.security]} required username={user} password={password};"


def _quoted(text: str) -> str:
    """A string of JAAS, which is read by java.io.StreamTokenizer."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
