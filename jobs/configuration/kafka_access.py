"""How clients reach the brokers: the address, and how the two sides authenticate.

``plaintext``: neither authentication nor encryption, for a broker on this machine. ``tls``: authenticates the brokers and encrypts.
``iam``: TLS, and the client authenticates by its AWS identity, as MSK defines it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Security = Literal["plaintext", "tls", "iam"]

# Kafka's names of the same. Source: Apache Kafka, "Security".
PROTOCOLS: dict[Security, str] = {"plaintext": "PLAINTEXT", "tls": "SSL", "iam": "SASL_SSL"}
# Source: Amazon MSK Developer Guide, "Configure clients for IAM access control"; the classes are those of aws-msk-iam-auth.
_IAM = {
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}


@dataclass(frozen=True)
class KafkaAccess:
    """The brokers, and how to authenticate.

    Args:
        address: ``host:port``, several separated by commas.
        security: of the brokers' listener.
        region: AWS region of the cluster, for which signatures are valid; required with ``iam``.
        ca_file: CA certificates in PEM for the brokers' certificates; None: those that the system trusts.
    """

    address: str
    security: Security = "plaintext"
    region: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if self.security == "iam" and not self.region:
            raise ValueError("a region: IAM signatures are valid in a single region")

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink, whose Java clients sign with MSK's own library."""
        options = {"bootstrap.servers": self.address}
        if self.security != "plaintext":
            options["security.protocol"] = PROTOCOLS[self.security]
            if self.ca_file:
                options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        if self.security == "iam":
            options |= _IAM
        return {f"kafka.{name}": value for name, value in options.items()}
