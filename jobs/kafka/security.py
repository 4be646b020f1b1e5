"""The settings that a confluent-kafka client needs to authenticate with the brokers.

It is a C library without AWS support: for ``iam`` it takes a token that MSK's Python signer creates from the credentials that the AWS
SDK finds, in a pod those of its pod identity.

Source: Amazon MSK Developer Guide, "Configure clients for IAM access control".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.jobs.configuration.kafka_access import MECHANISMS, PROTOCOLS, KafkaAccess
from penstock.jobs.kafka.errors import NoKafkaCredentials

# A token and its expiry in seconds since the epoch.
Token = tuple[str, float]


def client_settings(access: KafkaAccess) -> dict[str, Any]:
    """Settings of a confluent-kafka client.

    Args:
        access: to the brokers, with the credentials that they ask for.

    Raises:
        NoKafkaCredentials: JOB-010, with ``iam``: raised before the client waits for a token that never comes.
    """
    settings: dict[str, Any] = {"bootstrap.servers": access.address}
    if access.security != "plaintext":
        settings["security.protocol"] = PROTOCOLS[access.security]
        settings |= _trusted(access)
    if access.security == "iam" and access.region:
        token(access.region)
        settings |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": _signer(access.region)}
    if access.security in MECHANISMS:
        known = access.user_and_password
        settings |= {"sasl.mechanism": MECHANISMS[access.security], "sasl.username": known.user, "sasl.password": known.password}
    if access.security == "mtls":
        settings |= {"ssl.certificate.pem": access.certificate.chain, "ssl.key.pem": access.certificate.key}
    return settings


def _trusted(access: KafkaAccess) -> dict[str, str]:
    if access.ca_file:
        return {"ssl.ca.location": access.ca_file}
    return {"ssl.ca.pem": access.ca} if access.ca else {}


def token(region: str) -> Token:
    """A token for the brokers of a region, signed with the credentials that the AWS SDK finds; no broker is contacted.

    Args:
        region: AWS region of the cluster.

    Returns:
        The token, and its expiry in seconds since the epoch: 15 minutes.

    Raises:
        NoKafkaCredentials: JOB-010.
    """
    import botocore.session  # these only for iam: they cost half a second
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.exceptions import BotoCoreError

    try:
        if botocore.session.get_session().get_credentials() is None:
            raise _no_credentials("none found")
        signed, expires_ms = MSKAuthTokenProvider.generate_auth_token(region)
    except BotoCoreError as error:
        raise _no_credentials(" ".join(str(error).split())) from None
    return signed, expires_ms / 1000


def _signer(region: str) -> Callable[[str], Token]:
    """Called by the client for a token at its start, and again before one expires."""
    return lambda _: token(region)


def _no_credentials(given: str) -> NoKafkaCredentials:
    need = "AWS credentials, for IAM authentication with the brokers"
    fix = "set AWS_PROFILE or access keys; in a pod, check its service account's Pod Identity association"
    return NoKafkaCredentials(path="kafka", given=given, need=need, fix=fix)
