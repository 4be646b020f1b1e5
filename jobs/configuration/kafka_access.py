"""How clients reach the brokers: the address, and what proves who is at either end.

``plaintext`` proves nothing and hides nothing: a broker on this machine. ``tls`` proves the brokers and encrypts. ``iam`` is TLS, and the
client proves its AWS identity, MSK's way.
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
    """The brokers, and how to be let in.

    Args:
        address: ``host:port``, several with commas.
        security: of the brokers' listener.
        region: AWS region of the cluster, in which alone a signature holds; needed with ``iam``.
        ca_file: certificates in PEM that the brokers' are signed by; None: those that the system trusts.
    """

    address: str
    security: Security = "plaintext"
    region: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if self.security == "iam" and not self.region:
            raise ValueError("a region: IAM signatures are valid in a single region")

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink, whose clients are Java's: they sign with MSK's own library."""
        options = {"bootstrap.servers": self.address}
        if self.security != "plaintext":
            options["security.protocol"] = PROTOCOLS[self.security]
            if self.ca_file:
                options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        if self.security == "iam":
            options |= _IAM
        return {f"kafka.{name}": value for name, value in options.items()}
