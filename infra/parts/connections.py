"""The connections of an environment: databases and endpoints that jobs name."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, model_validator

from penstock.infra.parts.part import Arn, Part, SecretArn
from penstock.jobs.spec import ConnectionKind
from penstock.jobs.spec.connection_addresses import kind_of, port_of, schemes

_HTTPS = 443
# Source: PostgreSQL's documentation, libpq, sslmode: the other modes may fall back to plaintext.
_TLS_MODES = ("require", "verify-ca", "verify-full")


class Connection(Part):
    """A database or an endpoint.

    Args:
        kind: its type.
        url: its address, without credentials: ``postgresql://host:5432/bank?sslmode=verify-full``, ``rediss://host:6379/0``,
            ``https://host/path``, ``tcp://host:9999``. None for an HTTP endpoint whose URL is its secret.
        secret: ARN of the secret in AWS Secrets Manager with its user and password, or with the whole URL.
        key: ARN of the KMS key that the secret is encrypted with; None: AWS's own for secrets.
        plaintext: whether connections without TLS are allowed.
    """

    kind: ConnectionKind
    url: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    secret: SecretArn | None = None
    key: Arn | None = None
    plaintext: bool = False

    @property
    def port(self) -> int:
        """The port that a job's pods connect to."""
        return (port_of(self.url) if self.url else None) or _HTTPS

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.url is None and (self.kind != "http" or self.secret is None):
            raise ValueError("a url; only http connections may keep it in the secret")
        if self.key is not None and self.secret is None:
            raise ValueError("key together with secret, and only then")
        return self

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        if self.url is None:
            return self
        parts = urlsplit(self.url)
        if kind_of(self.url) != self.kind or not parts.hostname:
            raise ValueError(f"a url starting with {' or '.join(f'{scheme}://' for scheme in schemes(self.kind))} and containing a host")
        if parts.username is not None or parts.password is not None or "password" in parse_qs(parts.query):
            raise ValueError("a url without user and password: store them in AWS Secrets Manager and set `secret`")
        if port_of(self.url) is None:
            raise ValueError("a url with a port: its scheme has no default port")
        return self

    @model_validator(mode="after")
    def _behind_tls(self) -> Self:
        if self.url is not None and not self.plaintext and not _by_tls(self.url, self.kind):
            need = {"postgres": f"?sslmode={'|'.join(_TLS_MODES)}", "redis": "rediss://", "http": "https://"}.get(self.kind, "another kind")
            raise ValueError(f"TLS ({need}), or plaintext: true")
        return self


def _by_tls(url: str, kind: ConnectionKind) -> bool:
    parts = urlsplit(url)
    if kind == "postgres":
        return parse_qs(parts.query).get("sslmode", [""])[-1] in _TLS_MODES
    return parts.scheme in ("rediss", "https")
