"""What the Kubernetes API of an existing cluster must have, and must not have, before a deploy; read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from kubernetes import client

from penstock.infra.environment import Environment
from penstock.infra.manifests import fluent_bit, prometheus
from penstock.infra.manifests.deployed_job import namespace
from penstock.scripts.provisioning import eks_cluster
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import NamespaceTaken
from penstock.scripts.provisioning.existing_cluster import has_own_controller, karpenter_missing, karpenter_there, namespace_of_another
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked, connected, eks_token
from penstock.sizing.errors import PenstockError, raise_all

# The groups and the version of the resources that the stacks create.
_GROUPS = ("karpenter.sh", "karpenter.k8s.aws")
_VERSION = "v1"
# Helm's annotation of an object. Source: Helm's documentation, "Charts: Tips and tricks", adopting resources.
RELEASE = "meta.helm.sh/release-name"
# As `Environment.release` names them in an existing cluster.
_OF_ENVIRONMENT = re.compile(r"penstock-(.+)-(?:fluent-bit|prometheus)")


def check(aws: AwsAccess, jobs: Sequence[str]) -> str | None:
    """Check that the cluster has Karpenter where the environment names it as existing, has none where the stacks install it, and has no
    namespaces of others under the names of the stacks'.

    Args:
        aws: AWS of the environment.
        jobs: names of its jobs that have a driver of their own, and of its sessions.

    Returns:
        What is said of it; None if the environment creates its own cluster, or its cluster is emulated and has no such API.

    Raises:
        PenstockError: DEP-055 and INF-064; several are raised as `Faults`. DEP-007, DEP-010, TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    if aws.environment.existing_cluster is None:
        return None
    address = eks_cluster.reached(aws)
    if isinstance(address, str):
        return None
    own = has_own_controller(aws)
    with connected(address, partial(eks_token, aws, address.name)) as api:
        raise_all(list(faults(api, aws.environment, jobs, own_controller=own)))
    return f"{address.endpoint} has what jobs need"


def faults(
    api: client.ApiClient, environment: Environment, jobs: Sequence[str], *, own_controller: bool = False
) -> Iterator[PenstockError]:
    """As `check`, of one API.

    Args:
        api: client of the cluster's API.
        environment: with an existing cluster.
        jobs: names of its jobs that have a driver of their own, and of its sessions.
        own_controller: whether its Karpenter is that of the stacks.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    existing = environment.existing_cluster
    assert existing is not None
    with asked("what the cluster has of Karpenter"):
        groups = {group.name: group for group in client.ApisApi(api).get_api_versions(_request_timeout=REQUEST_LIMIT_S).groups}
        missing = [name for name in _GROUPS if name not in groups or _VERSION not in [one.version for one in groups[name].versions]]
        if existing.karpenter == "existing" and missing:
            yield karpenter_missing(environment, f"no API {', '.join(f'{name}/{_VERSION}' for name in missing)}")
        if existing.karpenter == "create" and _GROUPS[0] in groups and not own_controller:
            yield karpenter_there(environment, f"its API has {_GROUPS[0]}")
    with asked("the namespaces"):
        yield from _taken(api, environment, jobs)


def _taken(api: client.ApiClient, environment: Environment, jobs: Sequence[str]) -> Iterator[PenstockError]:
    wanted = {namespace(job): namespace(job) for job in jobs}
    wanted[fluent_bit.NAMESPACE] = environment.release("fluent-bit")
    if environment.spec.observability.prometheus != "none":
        wanted[prometheus.NAMESPACE] = environment.release("prometheus")
    for one in client.CoreV1Api(api).list_namespace(_request_timeout=REQUEST_LIMIT_S).items:
        release = wanted.get(one.metadata.name)
        owner = (one.metadata.annotations or {}).get(RELEASE)
        if release is not None and owner != release:
            yield environment.locate(_fault(one.metadata.name, owner), "spec", "eks", "existing", "name")


def _fault(name: str, owner: str | None) -> NamespaceTaken:
    """Of a namespace that has no release, or another one than the stacks' own."""
    other = _OF_ENVIRONMENT.fullmatch(owner or "")
    if other is not None:
        return namespace_of_another(name, other[1])
    given = f"{name}, of the release {owner}" if owner else name
    need = "a namespace that the stacks create; Helm takes over none of others"
    return NamespaceTaken(given=given, need=need, fix="rename or remove that namespace, or the job")
