"""Kubernetes API of an environment's cluster, authenticated with the caller's AWS credentials."""

from __future__ import annotations

import base64
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from penstock.scripts.provisioning.api_server import ClusterAddress
from penstock.scripts.provisioning.aws_access import AwsAccess, translated
from penstock.scripts.provisioning.errors import ApiServerNotReached, KubernetesRefused

# Source: aws-iam-authenticator, "API Authorization from Outside a Cluster": the prefix, the signed header, and the expiry of the URL; EKS
# accepts the token for 15 minutes.
_PREFIX = "k8s-aws-v1."
_CLUSTER_HEADER = "x-k8s-aws-id"
_URL_GOOD_FOR_S = 60
RENEW_AFTER_S = 600
# Timeout of one request.
REQUEST_LIMIT_S = 30

Token = Callable[[], str]


def eks_token(aws: AwsAccess, cluster: str) -> str:
    """Return a token that EKS accepts for the caller's AWS identity: a presigned request to STS.

    Args:
        aws: AWS of the environment.
        cluster: the cluster's name.

    Raises:
        PenstockError: TOOL-030.
    """
    sts = aws.client("sts")

    def keep_cluster(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context[_CLUSTER_HEADER] = params.pop("Cluster", None)

    def add_cluster(request: Any, **_: Any) -> None:
        request.headers[_CLUSTER_HEADER] = request.context[_CLUSTER_HEADER]

    sts.meta.events.register("provide-client-params.sts.GetCallerIdentity", keep_cluster)
    sts.meta.events.register("before-sign.sts.GetCallerIdentity", add_cluster)
    with translated("STS"):
        url = sts.generate_presigned_url("get_caller_identity", Params={"Cluster": cluster}, ExpiresIn=_URL_GOOD_FOR_S, HttpMethod="GET")
    return _PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@contextmanager
def connected(address: ClusterAddress, token: Token) -> Iterator[client.ApiClient]:
    """Return a client of the Kubernetes API.

    Args:
        address: the API server.
        token: returns a new token; called again before the last one expires.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="utf-8") as ca:
        ca.write(address.ca_pem)
        ca.flush()
        with client.ApiClient(_configuration(address, token, Path(ca.name))) as api:
            yield api


def _configuration(address: ClusterAddress, token: Token, ca: Path) -> client.Configuration:
    configuration = client.Configuration(host=address.endpoint)
    configuration.ssl_ca_cert = str(ca)
    configuration.retries = 2
    made_s = 0.0

    def renew(asked: client.Configuration) -> None:
        nonlocal made_s
        if not made_s or time.monotonic() - made_s > RENEW_AFTER_S:
            asked.api_key["authorization"] = token()
            asked.api_key_prefix["authorization"] = "Bearer"
            made_s = time.monotonic()

    configuration.refresh_api_key_hook = renew
    renew(configuration)
    return configuration


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Convert the client's exceptions into coded errors.

    Args:
        what: what was requested, for the message.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    try:
        yield
    except ApiException as error:
        given = f"{error.status} {error.reason}"
        fix = "have the role of the caller in spec.eks.admins, or admitted by the owners of an existing cluster, and retry"
        raise KubernetesRefused(path=what, given=given, need="permission for this request in the cluster", fix=fix) from None
    except HTTPError as error:
        fix = "retry; it resumes from here"
        raise ApiServerNotReached(
            path=what, given=" ".join(str(error).split()), need="a successful response of the API server", fix=fix
        ) from None
