"""The cluster that the tests of the tier run on: their own, or one that a kubeconfig names."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from kubernetes import config
from kubernetes.client import ApiClient, AuthorizationV1Api, CoreV1Api, DiscoveryV1Api
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError
from yaml import YAMLError

from penstock.scripts.kube.cluster.node import Node
from penstock.scripts.kube.cluster.pod_cluster import PodCluster
from penstock.scripts.kube.errors import KubeconfigUnusable
from tests.kube.evidence import wait_for
from tests.kube.objects import Objects

# A cluster of the user's, and the address of this machine for its pods.
KUBECONFIG, HOST = "KUBECONFIG", "PENSTOCK_PODS_HOST"
# The jobs' image, and an archive of it for the tests' own cluster, which pulls nothing.
IMAGE, ARCHIVE = "PENSTOCK_PODS_IMAGE", "PENSTOCK_PODS_IMAGE_ARCHIVE"
# Network policies allow a job's pods HTTPS, its brokers and its connections: S3 has the port of the first.
HTTPS = 443
# Tried four times.
ANSWER_S = 10.0
_OWN = f"unset {KUBECONFIG} for the tests' own cluster"
# What the tests do in namespaces that they create: verb, group, resource.
_NEEDED = (
    ("create", "", "namespaces"),
    ("delete", "", "namespaces"),
    ("create", "", "pods"),
    ("create", "apps", "statefulsets"),
    ("create", "rbac.authorization.k8s.io", "roles"),
    ("create", "networking.k8s.io", "networkpolicies"),
)


@dataclass(frozen=True)
class ClusterUnderTest:
    """A cluster whose pods run.

    Args:
        kubeconfig: of a user who may create namespaces and everything in them.
        host: the address at which its pods reach this machine.
        objects: its objects.
        core: its API of pods and nodes.
        own: the tests' own cluster, whose nodes can be lost; None: the user's.
    """

    kubeconfig: Path
    host: str
    objects: Objects
    core: CoreV1Api
    own: PodCluster | None = None

    @property
    def api_ports(self) -> frozenset[int]:
        """The ports of the API behind its service, which network policies see: EKS has 443, kind 6443."""
        slices = DiscoveryV1Api(self.core.api_client).list_namespaced_endpoint_slice(
            "default", label_selector="kubernetes.io/service-name=kubernetes"
        )
        return frozenset(port.port for one in slices.items for port in one.ports)

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the tests' own cluster; a test that needs them is skipped on another."""
        if self.own is None:
            pytest.skip("it takes nodes away, which is not done to a cluster of the user's")
        return self.own.nodes

    @property
    def api_server(self) -> int:
        """Process id of the API server of the tests' own cluster; a test that needs it is skipped on another."""
        if self.own is None:
            pytest.skip("it stops the API server, which is not done to a cluster of the user's")
        return self.own.control_plane.api.pids[1]

    def tree(self, node: Node) -> Path:
        """The cgroups of a node's pods, in the hierarchy of memory."""
        assert self.own is not None
        return self.own.cgroups.memory(node.name)

    def node_of(self, namespace: str, pod: str) -> Node:
        """The node that a pod runs on."""
        name = self.core.read_namespaced_pod(pod, namespace).spec.node_name
        return next(node for node in self.nodes if node.name == name)

    def wait_until_nothing_runs(self, namespace: str) -> None:
        """Waits until no container of a namespace runs on the own nodes.

        A namespace that is gone from the API may have some: those of a node that was lost end when it is back.
        """
        for node in self.own.nodes if self.own else ():
            wait_for(partial(_nothing_runs, node, namespace), 120)


def _nothing_runs(node: Node, namespace: str) -> bool:
    own = node.ctr("containers", "list", "--quiet", f'labels."io.kubernetes.pod.namespace"=={namespace}').split()
    running = {line.split()[0] for line in node.ctr("tasks", "list").splitlines() if line.endswith("RUNNING")}
    return not running & set(own)


def of_own(cluster: PodCluster, client: ApiClient) -> ClusterUnderTest:
    """The tests' own cluster."""
    return ClusterUnderTest(cluster.kubeconfig, cluster.host_address, Objects(client), CoreV1Api(client), cluster)


def given_image() -> str:
    """The image for the cluster of a kubeconfig.

    Raises:
        KubeconfigUnusable: KUBE-027.
    """
    image = os.environ.get(IMAGE, "")
    if ":" not in image.rpartition("/")[2]:
        fix = f"push one, and set {IMAGE} to its name and tag; or {_OWN}"
        raise KubeconfigUnusable(
            path=IMAGE, given=image or "not set", need="the jobs' image that the cluster can pull, with a tag", fix=fix
        )
    return image


def of_kubeconfig(file: Path) -> ClusterUnderTest:
    """The cluster of a kubeconfig.

    Raises:
        KubeconfigUnusable: KUBE-027.
    """
    host = os.environ.get(HOST, "")
    if not host:
        fix = f"set {HOST}; with kind it is the gateway of its Docker network; or {_OWN}"
        raise KubeconfigUnusable(path=HOST, given="not set", need="the address at which pods reach this machine", fix=fix)
    _refuse_unusable_host(host)
    try:
        client = config.new_client_from_config(config_file=str(file))
        _refuse_missing_rights(file, client)
    except (OSError, YAMLError, config.ConfigException, ApiException, HTTPError) as error:
        given = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise KubeconfigUnusable(
            path=str(file), given=given, need="a cluster that answers", fix="check it with kubectl get nodes"
        ) from None
    return ClusterUnderTest(file, host, Objects(client), CoreV1Api(client))


def _refuse_unusable_host(host: str) -> None:
    try:
        with socket.create_server((host, HTTPS)):
            return
    except OSError as error:
        need = f"an address of this machine with a free port {HTTPS}, which network policies allow, and a user who may listen there"
        fix = "as root, or with net.ipv4.ip_unprivileged_port_start=443; `ip address` shows the addresses, `ss -ltnp` who listens"
        said = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise KubeconfigUnusable(path=HOST, given=f"{host}:{HTTPS}: {said}", need=need, fix=fix) from None


def _refuse_missing_rights(file: Path, client: ApiClient) -> None:
    reviews = AuthorizationV1Api(client)
    missing = []
    for verb, group, resource in _NEEDED:
        attributes = {"verb": verb, "group": group, "resource": resource}
        review = reviews.create_self_subject_access_review(
            {"spec": {"resourceAttributes": attributes}}, _request_timeout=(ANSWER_S, ANSWER_S)
        )
        if not review.status.allowed:
            missing.append(f"{verb} {resource}")
    if missing:
        need, fix = "a user who may create namespaces and everything in them", "use a kubeconfig of an administrator of the cluster"
        raise KubeconfigUnusable(path=str(file), given=f"not allowed: {', '.join(missing)}", need=need, fix=fix)
