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

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from penstock.jobs.errors import SecretUnusable
from penstock.jobs.secret_text import fields, secret_text
from penstock.jobs.spec.connection_addresses import kind_of

_NEED = "JSON with username and password, or with url"


def with_credentials(urls: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Name -> URL, credentials included.

    Args:
        urls: name -> URL.
        secrets: name -> ARN of its secret; the URL may then be missing.

    Raises:
        SecretUnusable: JOB-052.
    """
    return {**urls, **{name: _url(name, urls.get(name), secret_text(arn, f"connection {name}", _NEED)) for name, arn in secrets.items()}}


def _url(name: str, url: str | None, secret: str) -> str:
    """The whole URL. The secret's content appears in none of the errors."""
    known = fields(secret)
    whole = known.get("url") if known else secret.strip() if url is None else None
    if whole is not None:
        if kind_of(whole) is None or (url is not None and kind_of(whole) != kind_of(url)):
            need = f"a URL of the connection's kind in the secret, such as {url or 'https://host/path'}"
            raise SecretUnusable(path=f"connection {name}", need=need, fix="correct the secret's url")
        return whole
    if url is None or not known or not known.get("password"):
        need = "a URL in the environment, and a secret with username and password" if url is None else _NEED
        raise SecretUnusable(path=f"connection {name}", need=need, fix="correct the secret, or the environment's connection")
    parts = urlsplit(url)
    who = f"{quote(known.get('username', ''), safe='')}:{quote(known['password'], safe='')}"
    return parts._replace(netloc=f"{who}@{parts.netloc.rpartition('@')[2]}").geturl()
