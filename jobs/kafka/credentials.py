"""User and password for brokers that ask for them: read from AWS Secrets Manager, before the first client is made.

The secret is JSON with ``username`` and ``password``, as MSK and Penstock's other connections have it. A rotated one is read at the next
start: brokers that reject the old password end the job, and the driver that Kubernetes starts in its place reads the secret again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from penstock.jobs.configuration.kafka_access import MECHANISMS, Credentials, KafkaAccess
from penstock.jobs.configuration.runtime import KAFKA_PASSWORD_VARIABLE, KAFKA_USER_VARIABLE
from penstock.jobs.errors import SecretUnusable
from penstock.jobs.secret_text import fields, secret_text

PATH = "spec.kafka.secret of the environment"
_NEED = "JSON with username and password"


def signed_in(access: KafkaAccess, client: Any = None) -> KafkaAccess:
    """The access with user and password; unchanged if the brokers ask for none, or if they are known.

    Args:
        access: to the brokers.
        client: boto3's of Secrets Manager; None: one with the credentials that the AWS SDK finds.

    Raises:
        SecretUnusable: JOB-052.
    """
    if access.security not in MECHANISMS or access.credentials is not None:
        return access
    user, password = os.environ.get(KAFKA_USER_VARIABLE), os.environ.get(KAFKA_PASSWORD_VARIABLE)
    if user is not None and password is not None:
        return replace(access, credentials=Credentials(user, password))
    assert access.secret is not None
    known = fields(secret_text(access.secret, PATH, _NEED, client)) or {}
    if not known.get("username") or not known.get("password"):
        raise SecretUnusable(path=PATH, given=access.secret, need=_NEED, fix='store {"username": "...", "password": "..."} in the secret')
    return replace(access, credentials=Credentials(known["username"], known["password"]))
