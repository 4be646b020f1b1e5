from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from penstock.infra.manifests.client_mode_conf import client_mode_conf, deployment_conf
from penstock.infra.manifests.job import job_manifests
from penstock.infra.manifests.spark_application import operated_manifests, spark_application
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from tests.infra.manifests.jobs_in_cluster import deployed, hold, of_kind

CRD = Path(__file__).resolve().parents[4] / "shared/crds/spark.apache.org_sparkapplications.yaml"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of a SparkApplication v1, from the operator's own CRD."""
    if not CRD.is_file():
        reason = f"the CRDs of the Apache operator are not in {CRD.parent.name}/ beside the checkout"
        if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    crd = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    (version,) = [one for one in crd["spec"]["versions"] if one["name"] == "v1"]
    closed: dict[str, Any] = _closed(version["schema"]["openAPIV3Schema"])
    return closed


def _closed(schema: Any) -> Any:
    """A copy that rejects fields that are not in the CRD: the API server drops such a field silently."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema["properties"] and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


@pytest.mark.parametrize("changes", [{}, {"shipped": "flights"}, {"trigger_s": None}], ids=["user-credit", "flights", "bounded"])
def test_it_is_a_spark_application_by_the_operators_crd(changes: dict[str, Any], schema: dict[str, Any]) -> None:
    application = spark_application(deployed(**changes))
    jsonschema.validate({"spec": application["spec"]}, schema)


def test_the_guard_refuses_a_field_that_the_crd_does_not_have(schema: dict[str, Any]) -> None:
    application = spark_application(deployed())
    application["spec"]["applicationTolerations"]["restartConfig"]["maxAttempts"] = 3
    with pytest.raises(jsonschema.ValidationError, match="maxAttempts"):
        jsonschema.validate({"spec": application["spec"]}, schema)


def test_all_else_of_the_job_is_by_kubernetes_own_schemas() -> None:
    for manifest in operated_manifests(deployed()):
        if manifest["kind"] != "SparkApplication":
            hold(manifest)


def test_only_the_operator_creates_the_driver_and_its_service() -> None:
    def kinds(manifests: list[dict[str, Any]]) -> set[str]:
        return {manifest["kind"] for manifest in manifests}

    assert kinds(job_manifests(deployed())) - kinds(operated_manifests(deployed())) == {"StatefulSet", "Service"}


def test_the_pods_are_as_large_as_without_the_operator() -> None:
    """The settings that determine the sizes of both kinds of pods; the overheads are absolute, because a factor has another meaning in
    cluster
    mode.
    """
    conf, client = spark_application(deployed())["spec"]["sparkConf"], client_mode_conf(deployed())
    sizes = [f"spark.{kind}.{what}" for kind in ("driver", "executor") for what in ("memory", "memoryOverhead", "cores")]
    for key in [*sizes, *(f"spark.kubernetes.{kind}.request.cores" for kind in ("driver", "executor")), "spark.executor.instances"]:
        assert conf[key] == client[key]


def test_what_is_sparks_own_in_cluster_mode_is_left_to_it() -> None:
    conf = spark_application(deployed())["spec"]["sparkConf"]
    left = {"spark.submit.deployMode", "spark.driver.host", "spark.driver.bindAddress", "spark.kubernetes.executor.podTemplateFile"}
    assert left.isdisjoint(conf)
    assert deployment_conf(deployed()).items() <= conf.items()
    assert conf["spark.kubernetes.authenticate.driver.serviceAccountName"] == "user-credit-driver"


def test_the_driver_reads_the_same_configuration_less_the_settings_that_the_application_has() -> None:
    (config_map,) = of_kind(operated_manifests(deployed()), "ConfigMap")
    (own,) = of_kind(job_manifests(deployed()), "ConfigMap")
    runtime, without = (
        RuntimeConfiguration.model_validate(json.loads(one["data"]["runtime.json"]), strict=False) for one in (config_map, own)
    )
    assert runtime.spark_conf == {}
    assert runtime == without.model_copy(update={"spark_conf": {}})
    assert set(config_map["data"]) == {"job.yaml", "runtime.json"}


def test_a_bounded_run_is_not_started_again() -> None:
    def restart(**changes: Any) -> str:
        policy: str = spark_application(deployed(**changes))["spec"]["applicationTolerations"]["restartConfig"]["restartPolicy"]
        return policy

    assert restart() == "OnInfrastructureFailure"
    assert restart(trigger_s=None) == "Never"
