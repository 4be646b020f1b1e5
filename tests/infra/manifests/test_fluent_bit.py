from __future__ import annotations

import json
import re
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import kubernetes_validate
import pytest

from penstock.infra.errors import LogsTooSmall
from penstock.infra.job_alarms import METRICS
from penstock.infra.manifests.deployed_job import namespace
from penstock.infra.manifests.fluent_bit import (
    DAEMON_SET,
    FIELDS,
    NAMESPACE,
    STATE_FOLDER,
    Logging,
    Search,
    buffer_mib,
    configuration,
    fluent_bit,
)
from penstock.infra.node_alarms import BEYOND_LIMITS
from penstock.infra.parts.nodes import DaemonSetRequest

REQUEST = DaemonSetRequest.model_validate({"name": "fluent-bit", "cpu": "100m", "memory": "128Mi"})
KARPENTER_GROUP = "/penstock/production/karpenter"
LOGGING = Logging(
    "production", "us-east-1", ("user-credit", "flights"), "/penstock/production/jobs", KARPENTER_GROUP, Search("search.example"), REQUEST
)


def _of(logging: Logging, part: str, name: str) -> list[dict[str, Any]]:
    return [one for one in configuration(logging)["pipeline"][part] if one["name"] == name]


def _object(kind: str, logging: Logging = LOGGING) -> dict[str, Any]:
    (manifest_of_kind,) = (manifest for manifest in fluent_bit(logging) if manifest["kind"] == kind)
    return manifest_of_kind


@pytest.mark.parametrize("kind", [manifest["kind"] for manifest in fluent_bit(LOGGING)])
def test_every_object_is_one_by_the_schema_of_kubernetes(kind: str) -> None:
    kubernetes_validate.validate(_object(kind), "1.35", strict=True)


def test_the_pods_requests_are_those_that_the_nodes_are_sized_with() -> None:
    spec = _object("DaemonSet")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}
    assert spec["tolerations"] == [{"operator": "Exists"}], "it runs on every node"
    assert "nodeSelector" not in spec


def test_the_pod_runs_on_the_nodes_that_are_sized_with_it() -> None:
    request = REQUEST.model_copy(update={"node_selector": {"penstock.dev/role": "executor"}})
    spec = _object("DaemonSet", replace(LOGGING, request=request))["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"penstock.dev/role": "executor"}


def test_each_job_has_a_log_group_and_a_daily_index_of_its_own() -> None:
    groups = {one["match"]: one["log_group_name"] for one in _of(LOGGING, "outputs", "cloudwatch_logs") if "job." in one["match"]}
    assert groups == {
        "job.user-credit.*": "/penstock/production/jobs/user-credit",
        "job.flights.*": "/penstock/production/jobs/flights",
    }
    indexes = {
        one["match"]: (one["logstash_prefix"], one["logstash_dateformat"])
        for one in _of(LOGGING, "outputs", "opensearch")
        if "job." in one["match"]
    }
    assert indexes == {
        "job.user-credit.*": ("penstock-user-credit", "%Y.%m.%d"),
        "job.flights.*": ("penstock-flights", "%Y.%m.%d"),
    }


def test_karpenters_logs_go_where_the_jobs_go_to_a_group_and_an_index_of_their_own() -> None:
    (source,) = (one for one in _of(LOGGING, "inputs", "tail") if one["tag"] == "karpenter.*")
    name = "karpenter-5d9cd8c5b9-x2x7k_kube-system_controller-0a1b.log"
    assert fnmatch(f"/var/log/containers/{name}", source["path"])
    assert not fnmatch(f"/var/log/containers/{name.replace('kube-system', namespace('karpenter'))}", source["path"])
    (group,) = (one for one in _of(LOGGING, "outputs", "cloudwatch_logs") if one["match"] == "karpenter.*")
    assert group["log_group_name"] == KARPENTER_GROUP
    (index,) = (one for one in _of(LOGGING, "outputs", "opensearch") if one["match"] == "karpenter.*")
    assert index["logstash_prefix"] == "penstock-karpenter.controller"
    # Nothing of it is a job's, even if a job has its name.
    logging = replace(LOGGING, jobs=("karpenter",))
    for part, name, key in (("inputs", "tail", "db"), ("inputs", "tail", "alias"), ("outputs", "opensearch", "logstash_prefix")):
        assert len({one[key] for one in _of(logging, part, name)}) == 2
    assert not fnmatch("job.karpenter.var.log.containers.a", group["match"])


def test_a_record_of_karpenter_has_the_fields_that_the_alarm_reads_and_each_of_them_once() -> None:
    modifier = _of(LOGGING, "filters", "record_modifier")[-1]
    assert modifier["match"] == "karpenter.*"
    kept = set(modifier["allowlist_key"])
    assert set(re.findall(r"\$\.(\w+)", BEYOND_LIMITS.pattern)) <= kept
    # A field of the line's own and one that its JSON has too would be twice in the record.
    assert "time" not in kept


def test_a_jobs_files_are_those_of_its_own_namespace() -> None:
    inputs = {one["tag"]: one["path"] for one in _of(LOGGING, "inputs", "tail")}
    assert inputs["job.user-credit.*"] == f"/var/log/containers/*_{namespace('user-credit')}_*.log"


def test_one_jobs_tags_never_match_anothers() -> None:
    logging = replace(LOGGING, jobs=("credit", "credit-b"))
    matches = [one["match"] for one in _of(logging, "outputs", "cloudwatch_logs")]
    assert not "job.credit-b.var.log".startswith(matches[0].removesuffix("*"))


def test_no_log_group_is_made_behind_the_stacks_back() -> None:
    assert {one["auto_create_group"] for one in _of(LOGGING, "outputs", "cloudwatch_logs")} == {"false"}


def test_a_records_fields_are_those_that_alarms_read_and_no_open_ended_ones() -> None:
    (modifier, *_) = _of(LOGGING, "filters", "record_modifier")
    assert modifier["allowlist_key"] == list(FIELDS)
    assert modifier["record"] == ["job user-credit", "environment production"]
    read = {word.removeprefix("$.") for metric in METRICS for word in f"{metric.pattern} {metric.value}".split() if word.startswith("$.")}
    assert read == {"event", "lagRecords"}
    assert read <= set(FIELDS)
    assert not {"ends", "lag", "offsets", "watermarks", "rowsIn"} & set(FIELDS), "they have a name for each topic or partition"


def test_the_kubernetes_api_is_asked_nothing() -> None:
    assert {one["use_tag_for_meta"] for one in _of(LOGGING, "filters", "kubernetes")} == {"on"}
    assert {one["kube_tag_prefix"] for one in _of(LOGGING, "filters", "kubernetes")} == {
        "job.user-credit.var.log.containers.",
        "job.flights.var.log.containers.",
        "karpenter.var.log.containers.",
    }
    assert not [manifest["kind"] for manifest in fluent_bit(LOGGING) if "Role" in manifest["kind"]]
    assert _object("ServiceAccount")["automountServiceAccountToken"] is False
    assert _object("DaemonSet")["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_without_open_search_the_logs_go_to_cloudwatch_alone() -> None:
    assert _of(replace(LOGGING, search=None), "outputs", "opensearch") == []


def test_requests_to_a_domain_of_aws_are_signed_and_all_are_encrypted() -> None:
    for one in _of(LOGGING, "outputs", "opensearch"):
        assert (one["aws_auth"], one["aws_region"], one["tls"], one["tls.verify"]) == ("on", "us-east-1", "on", "on")
    unsigned = replace(LOGGING, search=Search("search.example", 9200, signed=False))
    for one in _of(unsigned, "outputs", "opensearch"):
        assert "aws_auth" not in one
        assert (one["port"], one["tls"]) == (9200, "on")
    ports = [port["port"] for rule in _object("NetworkPolicy", unsigned)["spec"]["egress"] for port in rule["ports"]]
    assert 9200 in ports


def test_all_buffers_together_fit_into_the_pods_memory() -> None:
    for jobs in (1, 2, 5, 20, 39):
        logging = replace(LOGGING, jobs=tuple(f"job{number}" for number in range(jobs)))
        sizes = {one["mem_buf_limit"] for one in _of(logging, "inputs", "tail")}
        assert sizes == {f"{buffer_mib(logging)}MB"}
        assert 48 + (jobs + 1) * buffer_mib(logging) <= 128


def test_too_many_jobs_for_its_memory_are_refused_with_what_they_need() -> None:
    logging = replace(LOGGING, jobs=tuple(f"job{number}" for number in range(40)))
    with pytest.raises(LogsTooSmall) as refused:
        fluent_bit(logging)
    assert refused.value.fix == "memory: 130Mi, or more"
    enough = replace(logging, request=REQUEST.model_copy(update={"memory": 130}))
    assert buffer_mib(enough) == 2


def test_it_has_no_right_on_its_node_but_to_read_logs_and_to_keep_its_place() -> None:
    spec = _object("DaemonSet")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    context = container["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    host = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    assert host == {"logs": "/var/log", "state": STATE_FOLDER}
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {"configuration": True, "logs": True, "state": False}


def test_its_place_in_the_files_outlives_the_pod() -> None:
    assert {one["db"] for one in _of(LOGGING, "inputs", "tail")} == {
        f"{STATE_FOLDER}/{source}.db" for source in ("user-credit", "flights", "karpenter.controller")
    }


def test_another_configuration_is_another_pod_but_a_host_that_only_terraform_knows_is_not_hashed() -> None:
    def annotations(logging: Logging) -> dict[str, str]:
        annotations_of_pod: dict[str, str] = _object("DaemonSet", logging)["spec"]["template"]["metadata"]["annotations"]
        return annotations_of_pod

    one, other = "${TfToken[TOKEN.7]}", "${TfToken[TOKEN.9]}"
    key = "penstock.dev/configuration"
    assert annotations(LOGGING)[key] != annotations(replace(LOGGING, jobs=("flights",)))[key]
    assert annotations(replace(LOGGING, search=Search(one)))[key] == annotations(replace(LOGGING, search=Search(other)))[key]
    assert annotations(replace(LOGGING, search=Search(other)))["penstock.dev/search"] == other


def test_the_image_is_pinned_and_the_configuration_is_where_it_is_looked_for() -> None:
    (container,) = _object("DaemonSet")["spec"]["template"]["spec"]["containers"]
    assert container["image"].count(":") == 1
    assert container["image"].rpartition(":")[2][0].isdigit()
    data = _object("ConfigMap")["data"]
    assert json.loads(data["fluent-bit.yaml"]) == configuration(LOGGING)
    assert container["command"][-1] == "--config=/etc/penstock/fluent-bit.yaml"
    assert _object("ConfigMap")["metadata"]["name"] == DAEMON_SET
    assert _object("Namespace")["metadata"]["name"] == NAMESPACE


def test_a_record_of_a_session_has_the_job_that_it_names_itself_and_that_of_a_job_the_jobs_name() -> None:
    logging = replace(LOGGING, jobs=("flights", "shared"), sessions=("shared",))
    modified = {one["match"]: one for one in _of(logging, "filters", "record_modifier")}
    job, session = modified["job.flights.*"], modified["job.shared.*"]
    assert job["record"] == ["job flights", "environment production"] and "job" not in job["allowlist_key"]
    assert session["record"] == ["environment production"] and "job" in session["allowlist_key"]
