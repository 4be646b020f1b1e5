from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.constructs.local_chart import DEFAULT_TIMEOUT_S
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import driver_pod, program_of
from penstock.infra.manifests.network_policy import network_policies
from penstock.infra.manifests.resource_quota import limit_range
from penstock.infra.manifests.upgrade_check import DEADLINE_S, upgrade_check
from penstock.jobs.configuration.runtime import IMAGE_VARIABLE, READY_FILE_VARIABLE, RuntimeConfiguration
from penstock.jobs.driver import upgrade_check as program
from penstock.jobs.driver.errors import UpgradeNotChecked
from penstock.sizing.errors import CheckFailed
from tests.infra.manifests.jobs_in_cluster import deployed, hold


def check(**changes: Any) -> dict[str, Any]:
    """The Job of a shipped job's check."""
    return upgrade_check(deployed(**changes))[1]


def pod(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = check(**changes)["spec"]["template"]["spec"]
    return spec


def test_both_objects_are_ones_by_kubernetes_own_schemas_and_hooks_of_helm() -> None:
    for manifest in upgrade_check(deployed()):
        hold(manifest)
        assert manifest["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
        assert manifest["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"


def test_a_refusal_is_final_and_a_killed_pod_is_not() -> None:
    spec = check()["spec"]
    refused, disrupted = spec["podFailurePolicy"]["rules"]
    assert (refused["action"], refused["onExitCodes"]["values"]) == ("FailJob", [CheckFailed.exit_code])
    assert disrupted["action"] == "Ignore"
    assert UpgradeNotChecked.exit_code not in refused["onExitCodes"]["values"]
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (2, "Never")
    # Helm would else give up first, and say nothing of why.
    assert spec["activeDeadlineSeconds"] == DEADLINE_S < DEFAULT_TIMEOUT_S


def test_it_runs_as_the_driver_does_but_without_its_rights_in_kubernetes() -> None:
    own, driver = pod(), driver_pod(deployed(), program_of(deployed()), "Always")["spec"]
    (container,), (drivers,) = own["containers"], driver["containers"]
    for key in ("serviceAccountName", "securityContext", "nodeSelector", "tolerations"):
        assert own[key] == driver[key]
    for key in ("image", "securityContext", "terminationMessagePath"):
        assert container[key] == drivers[key]
    assert own["automountServiceAccountToken"] is False
    assert {"name": IMAGE_VARIABLE, "value": deployed().image} in container["env"]
    assert READY_FILE_VARIABLE not in {one["name"] for one in container["env"]}
    assert container["command"][-2] == program.__name__


def test_it_may_connect_to_s3_and_nobody_to_it() -> None:
    labels = check()["spec"]["template"]["metadata"]["labels"]
    selected = {
        policy["metadata"]["name"]
        for policy in network_policies(deployed())
        if policy["spec"]["podSelector"].get("matchLabels", {}).items() <= labels.items()
    }
    assert selected == {"default-deny", "outside"}


def with_driver(memory_mib: int, heap_mib: int, executor_mib: int) -> DeployedJob:
    """A job whose pods have other sizes."""
    plan = deployed().plan
    driver = plan.pods.driver.model_copy(update={"memory_mib": memory_mib, "heap_mib": heap_mib})
    executor = plan.pods.executor.model_copy(update={"memory_mib": executor_mib})
    pods = plan.pods.model_copy(update={"driver": driver, "executor": executor})
    return deployed(plan=plan.model_copy(update={"pods": pods}))


@pytest.mark.parametrize(
    ("sizes", "memory"),
    [
        ((2048, 1280, 16384), "1280Mi"),
        # A large heap is not the check's; what the app's imports need beside it is.
        ((8192, 6144, 4096), "2560Mi"),
        ((1024, 640, 4096), "1024Mi"),
        ((900, 512, 900), "900Mi"),
    ],
)
def test_it_has_the_drivers_memory_beside_its_heap_and_is_never_larger_than_the_namespace_allows(
    sizes: tuple[int, int, int], memory: str
) -> None:
    job = with_driver(*sizes)
    (container,) = upgrade_check(job)[1]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"] == memory
    most = limit_range(job)["spec"]["limits"][0]["max"]["memory"]
    assert int(memory.removesuffix("Mi")) <= int(most.removesuffix("Mi"))


def test_spark_gets_what_an_analysis_depends_on_and_writes_no_event_log(tmp_path: Path) -> None:
    plan = deployed().plan
    own = {"spark.eventLog.enabled": "true", "spark.sql.ansi.enabled": "true", "spark.driver.extraJavaOptions": "-Xmn2g"}
    job = deployed(plan=plan.model_copy(update={"spark_conf": {**plan.spark_conf, **own}}))
    files = upgrade_check(job)[0]["data"]
    (tmp_path / "runtime.json").write_text(files["runtime.json"], "utf-8")
    conf = RuntimeConfiguration.read(tmp_path / "runtime.json").spark_conf
    assert conf["spark.sql.ansi.enabled"] == "true"
    assert conf["spark.driver.memory"] == "512m"
    assert not conf.keys() & {"spark.eventLog.enabled", "spark.driver.extraJavaOptions", "spark.kubernetes.namespace"}
    assert json.dumps(upgrade_check(job)) == json.dumps(upgrade_check(job))
