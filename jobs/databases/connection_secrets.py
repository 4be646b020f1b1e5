"""The credentials of connections: read from AWS Secrets Manager when the driver starts, with its pod's permissions.

A deployed job's configuration has URLs without credentials, and for each connection that needs some the ARN of a secret. The secret's
text is one of these:

- JSON with ``username`` and ``password``, as RDS writes them; a password alone for Redis. They are inserted into the URL.
- JSON with ``url``, or for an HTTP endpoint a plain URL: this is then the whole connection, for example a webhook whose path is its
  secret.

A rotated secret takes effect at the next start: a database that rejects the old credentials ends the job, and the driver that Kubernetes
starts in its place reads the secret again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from penstock.jobs.errors import SecretUnusable
from penstock.jobs.spec.connection_addresses import kind_of

_ATTEMPTS = 5
_NEED = "JSON with username and password, or with url"


def with_credentials(urls: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Name -> URL, credentials included.

    Args:
        urls: name -> URL.
        secrets: name -> ARN of its secret; the URL may then be missing.

    Raises:
        SecretUnusable: JOB-052.
    """
    return {**urls, **{name: _url(name, urls.get(name), _asked(name, arn)) for name, arn in secrets.items()}}


def _asked(name: str, arn: str) -> str:
    try:
        # arn:aws:secretsmanager:<region>:<account>:secret:<name>
        client = boto3.client("secretsmanager", region_name=arn.split(":")[3], config=Config(retries={"total_max_attempts": _ATTEMPTS}))
        text: str | None = client.get_secret_value(SecretId=arn).get("SecretString")
    except (ClientError, BotoCoreError) as error:
        fix = "check the secret's ARN in the environment, and the job's permissions on the secret and its KMS key"
        raise SecretUnusable(path=f"connection {name}", given=str(error), need=f"read access to {arn}", fix=fix) from None
    if text is None:
        raise SecretUnusable(path=f"connection {name}", given=arn, need=f"a text secret: {_NEED}", fix="store the secret as a string")
    return text


def _url(name: str, url: str | None, secret: str) -> str:
    """The whole URL. The secret's content appears in none of the errors."""
    fields = _fields(secret)
    whole = fields.get("url") if fields else secret.strip() if url is None else None
    if whole is not None:
        if kind_of(whole) is None or (url is not None and kind_of(whole) != kind_of(url)):
            need = f"a URL of the connection's kind in the secret, such as {url or 'https://host/path'}"
            raise SecretUnusable(path=f"connection {name}", need=need, fix="correct the secret's url")
        return whole
    if url is None or not fields or not fields.get("password"):
        need = "a URL in the environment, and a secret with username and password" if url is None else _NEED
        raise SecretUnusable(path=f"connection {name}", need=need, fix="correct the secret, or the environment's connection")
    parts = urlsplit(url)
    who = f"{quote(fields.get('username', ''), safe='')}:{quote(fields['password'], safe='')}"
    return parts._replace(netloc=f"{who}@{parts.netloc.rpartition('@')[2]}").geturl()


def _fields(secret: str) -> dict[str, str] | None:
    """The secret's fields; None if it is not a JSON object. RDS writes its port as a number."""
    try:
        document = json.loads(secret)
    except ValueError:
        return None
    return {name: str(value) for name, value in document.items()} if isinstance(document, dict) else None
