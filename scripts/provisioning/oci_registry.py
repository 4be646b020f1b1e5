"""The digest of an image or a chart in an OCI registry, asked for as Helm and a container runtime do.

Source: OCI distribution specification, "Pulling manifests"; its "Token authentication" is that of Docker's registry.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import re
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import NamedTuple
from urllib.error import HTTPError

from penstock.scripts.provisioning.errors import RegistryNotReached, RegistryRefuses
from penstock.scripts.provisioning.registry_logins import Login, login_of

LIMIT_S = 30
# A manifest is a few KiB; a registry need not take more than 4 MiB.
_MOST_BYTES = 4 * 1024 * 1024
_TYPES = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_ECR = re.compile(r"^[0-9]{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404
# Docker Hub answers under another name than the one in images.
_HOSTS = {"docker.io": "registry-1.docker.io"}


class _Answered(Exception):
    """An answer with a status of its own, whose connection is closed."""

    def __init__(self, code: int, reason: str, challenge: str = "") -> None:
        super().__init__(f"HTTP {code} {reason}")
        self.code, self.challenge = code, challenge


class Reference(NamedTuple):
    """A name with its registry and tag.

    Args:
        host: of the registry, with its port.
        path: the repository in it.
        tag: its tag.
    """

    host: str
    path: str
    tag: str

    @classmethod
    def of(cls, name: str) -> Reference:
        """Of a name such as ``quay.io/prometheus/prometheus:v3.13.5``."""
        host, _, rest = name.partition("/")
        path, _, tag = rest.rpartition(":")
        return cls(host, path, tag)


def digest(name: str) -> str | None:
    """The digest of what a tag names; None if the registry does not have it.

    Args:
        name: with registry and tag.

    Raises:
        RegistryRefuses: DEP-058, it wants another login, or one at all.
        RegistryNotReached: DEP-059.
    """
    reference = Reference.of(name)
    try:
        return _digest(reference)
    except _Answered as error:
        if error.code == _NOT_FOUND:
            return None
        if error.code in (_UNAUTHORIZED, _FORBIDDEN):
            raise _refused(name, reference.host, error) from None
        raise RegistryNotReached(path=name, given=str(error), need="an answer of the registry", fix="try again later") from None
    except (OSError, HTTPException, ValueError) as error:
        fix = "check the network of this machine, its proxy (HTTPS_PROXY), and the registry's name"
        raise RegistryNotReached(path=name, given=str(error), need="an answer of the registry", fix=fix) from None


def _digest(reference: Reference) -> str:
    host = _HOSTS.get(reference.host, reference.host)
    url = f"{_scheme(host)}://{host}/v2/{reference.path}/manifests/{reference.tag}"
    login = login_of(reference.host)
    try:
        content = _get(url, {"Accept": _TYPES})
    except _Answered as error:
        if error.code != _UNAUTHORIZED or not error.challenge:
            raise
        content = _get(url, {"Accept": _TYPES, "Authorization": _answer(login, error)})
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _scheme(host: str) -> str:
    """A registry on this machine has no TLS."""
    name = host.rpartition(":")[0] or host
    try:
        return "http" if ipaddress.ip_address(name).is_loopback else "https"
    except ValueError:
        return "http" if name == "localhost" else "https"


def _answer(login: Login | None, error: _Answered) -> str:
    """What a registry asks for: a user, or the token of a service that it names."""
    kind, _, rest = error.challenge.partition(" ")
    if kind.lower() == "basic":
        if login is None:
            raise error
        return _basic(login)
    fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    realm = fields.pop("realm", "")
    if kind.lower() != "bearer" or not realm.startswith(("https://", "http://127.0.0.1")):
        raise error
    wanted = {key: value for key, value in fields.items() if key in ("service", "scope")}
    said = json.loads(_get(f"{realm}?{urllib.parse.urlencode(wanted)}", {"Authorization": _basic(login)} if login else {}))
    return f"Bearer {said.get('token') or said['access_token']}"


def _basic(login: Login) -> str:
    return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()


def _get(url: str, headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(url)
    for name, value in headers.items():
        # A registry may send on to another host, which is not to have the login.
        request.add_unredirected_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            content: bytes = answer.read(_MOST_BYTES)
    except HTTPError as error:
        with error:
            raise _Answered(error.code, str(error.reason), error.headers.get("WWW-Authenticate", "")) from None
    return content


def _refused(name: str, host: str, error: _Answered) -> RegistryRefuses:
    region = _ECR.match(host)
    password = f"aws ecr get-login-password --region {region[1]} | " if region else ""
    user = "AWS --password-stdin" if region else "USER"
    fix = f"{password}helm registry login --username {user} {host}"
    need = "a login that may pull it, which Helm has of 'helm registry login' or 'docker login'"
    return RegistryRefuses(path=name, given=str(error), need=need, fix=fix)
