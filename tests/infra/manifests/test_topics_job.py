from __future__ import annotations

from typing import Any

from penstock.infra.environment_file import load
from penstock.infra.manifests.topics_job import NAMESPACE, place, run
from penstock.infra.system_pods import ROLE_LABEL, SYSTEM_ROLE, TAINT, system_pods
from tests.infra.manifests.jobs_in_cluster import hold

OBJECTS = [*place([9096, 9098]), *run("topics-1", "registry.example/jobs:1", '{"address": "b:9098"}', system_pods(load("production")))]


def _of(kind: str) -> list[dict[str, Any]]:
    return [one for one in OBJECTS if one["kind"] == kind]


def test_the_objects_are_valid_and_in_one_namespace_that_is_restricted() -> None:
    for one in OBJECTS:
        hold(one)
    (namespace,) = _of("Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {one["metadata"].get("namespace", NAMESPACE) for one in OBJECTS} == {NAMESPACE}


def test_its_pod_runs_on_the_systems_nodes_once_and_has_no_rights_in_the_cluster() -> None:
    (job,) = _of("Job")
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {ROLE_LABEL: SYSTEM_ROLE}
    assert pod["tolerations"] == [{"key": TAINT, "operator": "Exists"}]
    assert (job["spec"]["backoffLimit"], pod["restartPolicy"], pod["automountServiceAccountToken"]) == (0, "Never", False)
    assert _of("ServiceAccount")[0]["automountServiceAccountToken"] is False
    assert not _of("Role") and not _of("RoleBinding")


def test_it_connects_to_brokers_aws_and_dns_and_nothing_connects_to_it() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in _of("NetworkPolicy")}
    assert policies["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = {port["port"] for rule in policies["outside"]["egress"] for port in rule["ports"]}
    assert ports == {53, 80, 443, 9096, 9098}
