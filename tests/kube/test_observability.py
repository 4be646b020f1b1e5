"""What brings logs and metrics away is accepted by a real API server, and the pod security of its namespaces lets its pods in."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.infra.manifests.fluent_bit import Logging, Search, fluent_bit
from penstock.infra.manifests.prometheus import Monitoring, prometheus
from penstock.infra.manifests.scraped_job import ScrapedJob
from penstock.infra.parts.nodes import DaemonSetRequest
from penstock.infra.parts.observability import Alarms
from tests.kube.objects import Objects, Refused

REQUEST = DaemonSetRequest.model_validate({"name": "fluent-bit", "cpu": "100m", "memory": "128Mi"})
LOGGING = Logging(
    "kube", "us-east-1", ("user-credit",), "/penstock/kube/jobs", "/penstock/kube/karpenter", Search("search.example"), REQUEST
)
JOB = ScrapedJob("user-credit", "user-credit-driver-0.user-credit-driver.job-user-credit.svc", bounded=False)
TOLERATIONS = ({"key": "CriticalAddonsOnly", "operator": "Exists"},)
MONITORING = Monitoring("kube", "us-east-1", (JOB,), Alarms(), 4, None, {"penstock.dev/role": "system"}, TOLERATIONS)
MANIFESTS = {"fluent-bit": fluent_bit(LOGGING), "prometheus": prometheus(MONITORING)}


def _pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """The pod that the release's controller would make."""
    controller = manifests[-1]
    template = controller["spec"]["template"]
    metadata = {**template["metadata"], "name": "made-by-a-test", "namespace": controller["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("release", MANIFESTS)
def test_every_object_and_its_pod_are_accepted(objects: Objects, release: str) -> None:
    for manifest in MANIFESTS[release]:
        applied = objects.apply(manifest)
        assert applied["metadata"]["name"] == manifest["metadata"]["name"]
    objects.create(_pod(MANIFESTS[release]), dry_run=True)


def test_a_second_apply_changes_nothing(objects: Objects) -> None:
    for manifest in (one for manifests in MANIFESTS.values() for one in manifests):
        first = objects.apply(manifest)
        assert objects.apply(manifest)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_pod_with_host_paths_is_refused_next_to_prometheus(objects: Objects) -> None:
    for manifest in MANIFESTS["prometheus"]:
        objects.apply(manifest)
    pod = _pod(MANIFESTS["fluent-bit"])
    pod["metadata"]["namespace"] = "observability"
    pod["spec"]["serviceAccountName"] = "prometheus"
    with pytest.raises(Refused, match="violates PodSecurity"):
        objects.create(pod, dry_run=True)
