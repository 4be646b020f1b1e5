"""The other renderings of a job, and the pods that the workloads would start: accepted by the API as they are."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import resources
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.infra.manifests.job import job_manifests
from penstock.infra.manifests.spark_application import operated_manifests
from penstock.sizing.executor_spread import ExecutorSpread
from tests.kube.charts import Release
from tests.kube.deployed import count, user_credit
from tests.kube.objects import Object, Objects, Refused

BROKERS = "b-1.kafka.internal:9098"
WORKLOADS = ("StatefulSet", "Job", "DaemonSet", "Deployment")


def pod_of(workload: Mapping[str, Any]) -> Object:
    """The pod that a workload's controller would make."""
    template = workload["spec"]["template"]
    metadata = {**template["metadata"], "name": f"{workload['metadata']['name']}-0", "namespace": workload["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def applied(objects: Objects, manifests: list[dict[str, Any]]) -> dict[str, Object]:
    """Applies them twice and gives them by kind; the second time must change nothing."""
    first = [objects.apply(manifest) for manifest in manifests]
    for manifest, was in zip(manifests, first, strict=True):
        again = objects.apply(manifest)
        assert again["metadata"]["resourceVersion"] == was["metadata"]["resourceVersion"], manifest["kind"]
    return {one["kind"]: one for one in first}


def test_a_job_without_an_operator_is_accepted_and_applied_again_without_a_change(objects: Objects) -> None:
    by_kind = applied(objects, job_manifests(user_credit(BROKERS, name="streaming")))
    assert by_kind["StatefulSet"]["spec"]["replicas"] == 1


def test_a_bounded_run_is_a_job_that_is_accepted(objects: Objects) -> None:
    by_kind = applied(objects, job_manifests(replace(user_credit(BROKERS, name="bounded"), trigger_s=None)))
    assert "StatefulSet" not in by_kind
    assert by_kind["Job"]["spec"]["podReplacementPolicy"] == "Failed"


def test_a_job_of_the_operator_is_accepted(objects: Objects, crds: list[Object]) -> None:
    by_kind = applied(objects, operated_manifests(user_credit(BROKERS, name="operated")))
    assert by_kind["SparkApplication"]["spec"]["deploymentMode"] == "ClusterMode"


def test_every_workload_may_start_its_pods(released: list[Release], chart_objects: Objects) -> None:
    manifests = [manifest for release in released for manifest in release.given]
    for quota in (manifest for manifest in manifests if manifest["kind"] == "ResourceQuota"):
        count(chart_objects, quota)
    workloads = [manifest for manifest in manifests if manifest["kind"] in WORKLOADS]
    assert {workload["metadata"]["name"] for workload in workloads} >= {
        "user-credit-driver",
        "flights-driver",
        "flights-upgrade-check",
        "fluent-bit",
        "prometheus",
    }
    for workload in workloads:
        chart_objects.create(pod_of(workload), dry_run=True)


def test_the_job_of_a_bounded_run_may_start_its_pod(objects: Objects) -> None:
    manifests = job_manifests(replace(user_credit(BROKERS, name="bounded-pod"), trigger_s=None))
    for manifest in manifests:
        objects.apply(manifest)
    objects.create(pod_of(manifests[-1]), dry_run=True)


@pytest.fixture(scope="module")
def executor(objects: Objects) -> Object:
    """An executor's pod as the template and the plan have it, in the namespace of its job."""
    job = user_credit(BROKERS, name="admitting")
    for manifest in job_manifests(job):
        objects.apply(manifest)
        if manifest["kind"] == "ResourceQuota":
            count(objects, manifest)
    pod = executor_pod_template(job)
    (container,) = pod["spec"]["containers"]
    container |= {"image": job.image, "resources": resources(job.plan.pods.executor)}
    pod["spec"]["serviceAccountName"] = job.service_account("executor")
    return {**pod, "metadata": {**pod["metadata"], "name": "executor", "namespace": job.namespace}}


def test_an_executor_of_the_template_may_start(objects: Objects, executor: Object) -> None:
    objects.create(executor, dry_run=True)


def spread_out() -> DeployedJob:
    job = user_credit(BROKERS, name="spread")
    pods = job.plan.pods.model_copy(update={"executor_spread": ExecutorSpread(nodes="required", zones="preferred")})
    return replace(job, plan=job.plan.model_copy(update={"pods": pods}), zones=3)


def test_executors_that_are_spread_may_start(objects: Objects, executor: Object) -> None:
    constraints = executor_pod_template(spread_out())["spec"]["topologySpreadConstraints"]
    created = objects.create({**executor, "spec": {**executor["spec"], "topologySpreadConstraints": constraints}}, dry_run=True)
    # As it is: nothing that the API does not know, and no defaults of its own.
    assert created["spec"]["topologySpreadConstraints"] == constraints


def test_executors_of_the_operator_are_spread_by_their_template(objects: Objects, crds: list[Object]) -> None:
    job = spread_out()
    constraints = executor_pod_template(job)["spec"]["topologySpreadConstraints"]
    operated = applied(objects, operated_manifests(job))["SparkApplication"]["spec"]["executorSpec"]
    assert operated["podTemplateSpec"]["spec"]["topologySpreadConstraints"] == constraints


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pod: pod["spec"].update(hostNetwork=True), "host namespaces"),
        (lambda pod: pod["spec"]["volumes"].append({"name": "root", "hostPath": {"path": "/"}}), "hostPath"),
        (lambda pod: pod["spec"]["containers"][0]["securityContext"].update(runAsUser=0), "runAsUser=0"),
        (lambda pod: pod["spec"]["containers"][0]["securityContext"].pop("capabilities"), "unrestricted capabilities"),
        (lambda pod: pod["spec"]["containers"][0]["securityContext"].update(allowPrivilegeEscalation=True), "allowPrivilegeEscalation"),
    ],
    ids=["host-network", "host-path", "root", "capabilities", "escalation"],
)
def test_a_pod_with_more_rights_is_refused_in_a_jobs_namespace(objects: Objects, executor: Object, change: Any, words: str) -> None:
    pod = deepcopy(executor)
    change(pod)
    with pytest.raises(Refused, match=words) as caught:
        objects.create(pod, dry_run=True)
    assert 'violates PodSecurity "restricted' in caught.value.message


def test_a_container_larger_than_any_that_is_planned_is_refused(objects: Objects, executor: Object) -> None:
    pod = deepcopy(executor)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "100Gi"}, "limits": {"memory": "100Gi"}}
    with pytest.raises(Refused, match="maximum memory usage per Container"):
        objects.create(pod, dry_run=True)


def test_executors_that_the_plan_does_not_have_are_refused_by_the_quota(objects: Objects, executor: Object) -> None:
    pod = deepcopy(executor)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"
    with pytest.raises(Refused, match="exceeded quota: planned"):
        objects.create(pod, dry_run=True)
