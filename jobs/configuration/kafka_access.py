"""How clients reach the brokers: the address, and how the two sides authenticate.

``plaintext``: neither authentication nor encryption, for a broker on this machine. ``tls``: authenticates the brokers and encrypts.
``iam``: TLS, and the client authenticates by its AWS identity, as MSK defines it. ``sasl-scram`` and ``sasl-plain``: TLS, and the client
authenticates by user and password, which it proves to know (SCRAM-SHA-512) or sends (PLAIN). ``mtls``: TLS, and the client authenticates
by a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Security = Literal["plaintext", "tls", "mtls", "iam", "sasl-scram", "sasl-plain"]

# Kafka's names of the same. Source: Apache Kafka, "Security".
PROTOCOLS: dict[Security, str] = {
    "plaintext": "PLAINTEXT",
    "tls": "SSL",
    "mtls": "SSL",
    "iam": "SASL_SSL",
    "sasl-scram": "SASL_SSL",
    "sasl-plain": "SASL_SSL",
}
# Those with user and password.
MECHANISMS: dict[Security, str] = {"sasl-scram": "SCRAM-SHA-512", "sasl-plain": "PLAIN"}
# Those whose clients need a secret.
WITH_SECRET: frozenset[Security] = frozenset({"mtls", *MECHANISMS})
# Spark redacts options whose value has a word of spark.redaction.regex, in plans, its UI and the event log. Kafka's client skips what is
# before a PEM's first line.
_REDACTED = "# no less secret than a password\n"
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
class ClientCertificate:
    """Certificate and key of a Kafka client, in PEM. Neither is part of its text.

    Args:
        chain: the certificate, followed by those of its issuers.
        key: the private key, in PKCS#8, which is what Kafka's Java client reads, without a passphrase.
    """

    chain: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True)
class KafkaAccess:
    """The brokers, and how to authenticate.

    Args:
        address: ``host:port``, several separated by commas.
        security: of the brokers' listener.
        region: AWS region of the cluster, for which signatures are valid; required with ``iam``.
        ca_file: file with CA certificates in PEM for the brokers' certificates; None: those that the system trusts.
        secret: ARN of the secret in AWS Secrets Manager with user and password or certificate and key; required with ``sasl-scram``,
            ``sasl-plain`` and ``mtls``.
        ca: CA certificates in PEM, instead of a file.
        credentials: what the secret has; None until it is read, see `penstock.jobs.kafka.credentials`.
    """

    address: str
    security: Security = "plaintext"
    region: str | None = None
    ca_file: str | None = None
    secret: str | None = None
    credentials: Credentials | ClientCertificate | None = field(default=None, repr=False)
    ca: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.security == "iam" and not self.region:
            raise ValueError("a region: IAM signatures are valid in a single region")
        if self.security in WITH_SECRET and self.secret is None:
            raise ValueError(f"a secret with the client's credentials, for {self.security}")

    @property
    def user_and_password(self) -> Credentials:
        """The credentials, which must have been read."""
        assert isinstance(self.credentials, Credentials), "clients are made before the secret is read"
        return self.credentials

    @property
    def certificate(self) -> ClientCertificate:
        """Certificate and key, which must have been read."""
        assert isinstance(self.credentials, ClientCertificate), "clients are made before the secret is read"
        return self.credentials

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink, whose Java clients sign with MSK's own library.

        With a password or a key, Spark redacts the option in plans and logs by its value, which has the word password.
        """
        options = {"bootstrap.servers": self.address}
        if self.security != "plaintext":
            options["security.protocol"] = PROTOCOLS[self.security]
            options |= self._trusted()
        if self.security == "iam":
            options |= _IAM
        if self.security in MECHANISMS:
            options |= {"sasl.mechanism": MECHANISMS[self.security], "sasl.jaas.config": self._login()}
        if self.security == "mtls":
            known = self.certificate
            options |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": known.chain,
                "ssl.keystore.key": _REDACTED + known.key,
            }
        return {f"kafka.{name}": value for name, value in options.items()}

    def _trusted(self) -> dict[str, str]:
        if self.ca_file:
            return {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.ca} if self.ca else {}

    def _login(self) -> str:
        user, password = (_quoted(text) for text in (self.user_and_password.user, self.user_and_password.password))
        return f"{_LOGIN_MODULES[self.security]} required username={user} password={password};"


def _quoted(text: str) -> str:
    """A string of JAAS, which is read by java.io.StreamTokenizer."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
