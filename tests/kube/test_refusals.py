"""What the API refuses: without these a test that all is accepted would say nothing."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.kube.charts import Release
from tests.kube.objects import Object, Objects, Refused

Change = Callable[[dict[str, Any]], object]


def the(released: list[Release], kind: str, name: str) -> dict[str, Any]:
    """A copy of a manifest, free to be spoilt."""
    manifests = [manifest for release in released for manifest in release.manifests]
    return deepcopy(next(one for one in manifests if (one["kind"], one["metadata"]["name"]) == (kind, name)))


def requirement(**fields: Any) -> Change:
    return lambda pool: pool["spec"]["template"]["spec"]["requirements"].append(fields)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (requirement(key="karpenter.sh/capacity-type", operator="Near", values=["spot"]), "Unsupported value"),
        (requirement(key="karpenter.sh/nodepool", operator="In", values=["a"]), "karpenter.sh/nodepool"),
        (requirement(key="kubernetes.io/hostname", operator="In", values=["a"]), "is restricted"),
        (requirement(key="karpenter.k8s.aws/instance-cpu", operator="Gt", values=["4", "8"]), "must have a single positive integer"),
        (requirement(key="kubernetes.io/arch", operator="In"), "must have a value defined"),
        (lambda pool: pool["spec"].update(weight=101), "less than or equal to 100"),
        (lambda pool: pool["spec"]["disruption"].update(budgets=[{"nodes": "ten"}]), "should match"),
        (lambda pool: pool["spec"]["template"]["spec"].update(expireAfter="1 month"), "should match"),
        (lambda pool: pool["spec"]["template"]["spec"].pop("nodeClassRef"), "Required value"),
        (lambda pool: pool["spec"].update(limit={"cpu": "1"}), "field not declared in schema"),
    ],
    ids=["operator", "own-label", "restricted-label", "two-values", "no-value", "weight", "budget", "expiry", "no-class", "mistyped"],
)
def test_a_wrong_node_pool_is_refused_by_the_rules_of_its_crd(
    released: list[Release], chart_objects: Objects, change: Change, words: str
) -> None:
    pool = the(released, "NodePool", "executors")
    pool["metadata"]["name"] = "wrong"
    change(pool)
    with pytest.raises(Refused, match=words):
        chart_objects.apply(pool, dry_run=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda node: node["spec"].update(instanceProfile="mine"), "instanceProfile"),
        (lambda node: node["spec"].update(subnetSelectorTerms=[]), "at least one item|should have at least 1|cannot be empty"),
        (lambda node: node["spec"].update(amiSelectorTerms=[{"alias": "al2023@latest"}, {"id": "ami-1"}]), "alias"),
        (lambda node: node["spec"]["metadataOptions"].update(httpTokens="sometimes"), "Unsupported value"),
        (lambda node: node["spec"]["tags"].update({"karpenter.sh/nodeclaim": "mine"}), "restricted"),
    ],
    ids=["two-roles", "no-subnets", "two-images", "tokens", "tag"],
)
def test_a_wrong_node_class_is_refused_by_the_rules_of_its_crd(
    released: list[Release], chart_objects: Objects, change: Change, words: str
) -> None:
    node_class = the(released, "EC2NodeClass", "default")
    node_class["metadata"]["name"] = "wrong"
    change(node_class)
    with pytest.raises(Refused, match=words):
        chart_objects.apply(node_class, dry_run=True)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("StatefulSet", lambda one: one["spec"].update(replica=2), "field not declared in schema"),
        ("StatefulSet", lambda one: one["spec"].update(serviceName="other"), "Forbidden|forbidden|immutable"),
        ("StatefulSet", lambda one: one["spec"]["template"]["metadata"]["labels"].update({"penstock.dev/job": "b"}), "selector"),
        ("Service", lambda one: one["spec"]["ports"][0].update(port=70000), "between 1 and 65535"),
        ("RoleBinding", lambda one: one["roleRef"].update(name="cluster-admin"), "cannot change roleRef"),
        ("ResourceQuota", lambda one: one["spec"]["hard"].update(pods="many"), "quantit"),
    ],
    ids=["mistyped", "other-service", "unselected", "port", "other-role", "quantity"],
)
def test_a_wrong_object_of_a_job_is_refused(released: list[Release], chart_objects: Objects, kind: str, change: Change, words: str) -> None:
    name = "planned" if kind == "ResourceQuota" else "user-credit-driver"
    manifest = the(released, kind, name)
    change(manifest)
    with pytest.raises(Refused, match=words):
        chart_objects.apply(manifest, dry_run=True)


def test_a_kind_without_its_crd_is_refused(objects: Objects) -> None:
    manifest: Object = {"apiVersion": "karpenter.sh/v1", "kind": "NoSuchKind", "metadata": {"name": "a"}}
    with pytest.raises(Refused):
        objects.apply(manifest)
