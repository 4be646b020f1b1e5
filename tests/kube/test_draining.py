"""A cluster made empty before a destroy, against an API server of its own: it ends what others' tests have made."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from rich.console import Console

from penstock.infra.environment_file import load
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.api_server import cluster_address, reach
from penstock.scripts.provisioning.draining import drain, stop_jobs
from penstock.scripts.provisioning.errors import KubernetesRefused, StillThere
from penstock.scripts.provisioning.kubernetes_access import connected
from tests.infra.manifests.karpenter_crds import CRDS
from tests.kube.fixtures import serving
from tests.kube.objects import Object, Objects

LABELS = {"app.kubernetes.io/part-of": "penstock", "penstock.dev/job": "clicks"}
NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "job-clicks"}}
POD = {"containers": [{"name": "driver", "image": "none"}], "terminationGracePeriodSeconds": 1}
LIMIT_S = 60
# Karpenter's own says much of its fields, of which nothing here depends.
NODE_CLAIMS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodeclaims.karpenter.sh"},
    "spec": {
        "group": "karpenter.sh",
        "names": {"kind": "NodeClaim", "plural": "nodeclaims"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def own_kube(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[ApiServer]:
    """An API server that no other test uses."""
    yield from serving(tmp_path_factory.mktemp("draining"), tell)


@pytest.fixture(scope="module")
def admin(own_kube: ApiServer) -> Iterator[Objects]:
    with config.new_client_from_config(config_file=str(own_kube.kubeconfig)) as api:
        made = Objects(api)
        made.apply(NAMESPACE)
        # A controller's work, of which there is none here: no pod is taken without it.
        made.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "job-clicks"}})
        yield made


def _token(admin: Objects, name: str, role: str | None) -> str:
    """A token of a service account with a cluster role, or with no rights at all."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    admin.apply(account)
    if role is not None:
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
        admin.apply({**binding, "subjects": [subject], "roleRef": reference})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token: str = admin.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", request)["status"]["token"]
    return token


def _connected(own_kube: ApiServer, admin: Objects, role: str | None = "cluster-admin") -> Any:
    ca = base64.b64encode(own_kube.ca.read_bytes()).decode()
    address = cluster_address({"cluster_name": "own", "cluster_endpoint": own_kube.url, "cluster_ca": ca})
    assert address is not None
    reach(address, load("production"))
    name = role or "nobody"
    return connected(address, lambda: _token(admin, name, role))


def _stateful_set(name: str) -> Object:
    template = {"metadata": {"labels": LABELS}, "spec": POD}
    spec = {"replicas": 1, "serviceName": name, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": _meta(name), "spec": spec}


def _pod(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _meta(name), "spec": POD}


def _meta(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "job-clicks", "labels": LABELS}


def _quiet() -> Steps:
    return Steps(Console(quiet=True))


def test_the_drivers_are_stopped_and_their_pods_are_waited_for(own_kube: ApiServer, admin: Objects) -> None:
    driver, pod = admin.apply(_stateful_set("clicks-driver")), _pod("clicks-driver-0")
    run = {"template": {"metadata": {"labels": LABELS}, "spec": {**POD, "restartPolicy": "Never"}}}
    admin.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta("clicks-run"), "spec": run})
    admin.apply(pod)

    def kubelet() -> None:
        """What the StatefulSet's controller and the kubelet would do, once the driver is told."""
        admin.wait_for(driver, "penstock.dev/job=clicks", lambda outcome: outcome[0]["spec"]["replicas"] == 0, LIMIT_S)
        admin.delete(pod)

    thread = threading.Thread(target=kubelet)
    thread.start()
    with _connected(own_kube, admin) as api:
        result = stop_jobs(api, pod_margin_s=LIMIT_S)
    thread.join()
    assert result == ("job-clicks/clicks-driver", "job-clicks/clicks-run")
    assert admin.list("v1", "Pod", "job-clicks") == []
    with _connected(own_kube, admin) as api:
        # A bounded run leaves in the background; what is told already is not told again.
        assert "job-clicks/clicks-driver" not in stop_jobs(api, pod_margin_s=LIMIT_S)


def test_a_driver_that_does_not_end_is_named_and_nothing_goes_before_it(own_kube: ApiServer, admin: Objects) -> None:
    pod = _pod("hangs-0")
    admin.apply(pod)
    with _connected(own_kube, admin) as api, pytest.raises(StillThere) as raised:
        drain(api, _quiet(), pod_margin_s=0)
    assert raised.value.given == "job-clicks/hangs-0"
    assert raised.value.need == "none left within 1 s"
    admin.delete(pod)


def _claims(admin: Objects) -> list[str]:
    items = admin.read("/apis/karpenter.sh/v1/nodeclaims")["items"]
    return [one["metadata"]["name"] for one in items]


def test_the_node_pools_go_and_the_last_node_is_waited_for(own_kube: ApiServer, admin: Objects) -> None:
    node_pools = CRDS / "karpenter.sh_nodepools.yaml"
    if not node_pools.exists():
        pytest.skip(f"the CRDs are not in {CRDS.name}/ beside the checkout")
    with _connected(own_kube, admin) as api:
        # Without Karpenter's kinds there are no nodes of its to drain.
        assert drain(api, _quiet()).node_pools == ()
    admin.serve([yaml.safe_load(node_pools.read_text("utf-8")), NODE_CLAIMS], LIMIT_S)
    pool, claim = _node_pool(), _node_claim()
    admin.apply(pool)
    admin.apply(claim)

    def karpenter() -> None:
        admin.wait_for(pool, "", lambda result: not result, LIMIT_S)
        assert _claims(admin) == ["executors-x"]
        admin.delete(claim)

    thread = threading.Thread(target=karpenter)
    thread.start()
    with _connected(own_kube, admin) as api:
        drained = drain(api, _quiet(), nodes_limit_s=LIMIT_S)
    thread.join()
    assert (drained.node_pools, drained.node_claims) == (("executors",), 1)
    assert _claims(admin) == []


def _node_pool() -> Object:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "executors"}, "spec": {"template": {"spec": _node()}}}


def _node_claim() -> Object:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "executors-x"}, "spec": _node()}


def _node() -> dict[str, Any]:
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    return {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [requirement],
        "expireAfter": "720h",
    }


def test_missing_permissions_are_reported(own_kube: ApiServer, admin: Objects) -> None:
    with _connected(own_kube, admin, role=None) as api, pytest.raises(KubernetesRefused) as raised:
        stop_jobs(api)
    assert raised.value.given.startswith("403")
    assert "spec.eks.admins" in raised.value.fix
    assert isinstance(api, client.ApiClient)
