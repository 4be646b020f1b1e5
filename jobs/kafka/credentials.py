"""Credentials for brokers that ask for them: read from AWS Secrets Manager, before the first client is made.

The secret is JSON with ``username`` and ``password``, as MSK and Penstock's other connections have it, or with ``certificate`` and ``key``
in PEM. A rotated one is read at the next start: brokers that reject the old password or certificate end the job, and the driver that
Kubernetes starts in its place reads the secret again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from penstock.jobs.configuration.kafka_access import WITH_SECRET, ClientCertificate, Credentials, KafkaAccess
from penstock.jobs.configuration.runtime import (
    KAFKA_CERTIFICATE_VARIABLE,
    KAFKA_KEY_VARIABLE,
    KAFKA_PASSWORD_VARIABLE,
    KAFKA_USER_VARIABLE,
)
from penstock.jobs.errors import SecretUnusable
from penstock.jobs.secret_text import fields, secret_text

PATH = "spec.kafka.secret of the environment"
_NEED = "JSON with username and password"


def signed_in(access: KafkaAccess, client: Any = None) -> KafkaAccess:
    """The access with its credentials; unchanged if the brokers ask for none, or if they are known.

    Args:
        access: to the brokers.
        client: boto3's of Secrets Manager; None: one with the credentials that the AWS SDK finds.

    Raises:
        SecretUnusable: JOB-052.
    """
    if access.security not in WITH_SECRET or access.credentials is not None:
        return access
    read = _certificate if access.security == "mtls" else _password
    return replace(access, credentials=read(access, client))


def variables(access: KafkaAccess) -> dict[str, str]:
    """Environment variables that give the credentials to a driver that can't read the secret; empty if there are none."""
    known = access.credentials
    if isinstance(known, Credentials):
        return {KAFKA_USER_VARIABLE: known.user, KAFKA_PASSWORD_VARIABLE: known.password}
    if isinstance(known, ClientCertificate):
        return {KAFKA_CERTIFICATE_VARIABLE: known.chain, KAFKA_KEY_VARIABLE: known.key}
    return {}


def _password(access: KafkaAccess, client: Any) -> Credentials:
    user, password = os.environ.get(KAFKA_USER_VARIABLE), os.environ.get(KAFKA_PASSWORD_VARIABLE)
    if user is not None and password is not None:
        return Credentials(user, password)
    assert access.secret is not None
    known = fields(secret_text(access.secret, PATH, _NEED, client)) or {}
    if not known.get("username") or not known.get("password"):
        raise SecretUnusable(path=PATH, given=access.secret, need=_NEED, fix='store {"username": "...", "password": "..."} in the secret')
    return Credentials(known["username"], known["password"])


def _certificate(access: KafkaAccess, client: Any) -> ClientCertificate:
    # cryptography takes a tenth of a second, and only this needs it.
    from penstock.jobs.kafka.client_certificate import NEED, client_certificate

    assert access.secret is not None
    chain, key = os.environ.get(KAFKA_CERTIFICATE_VARIABLE), os.environ.get(KAFKA_KEY_VARIABLE)
    if chain is None or key is None:
        known = fields(secret_text(access.secret, PATH, NEED, client)) or {}
        chain, key = known.get("certificate"), known.get("key")
    return client_certificate(chain, key, secret=access.secret, path=PATH)
