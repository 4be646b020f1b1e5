from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest

from penstock.infra import karpenter_settings
from penstock.infra.environment_file import load
from penstock.infra.karpenter_settings import Place, controller_values
from penstock.infra.manifests import fluent_bit
from penstock.infra.manifests.alerting_rules import rules
from penstock.infra.manifests.deployed_job import OBSERVABILITY_NAMESPACE
from penstock.infra.manifests.grafana_dashboard import PANELS
from penstock.infra.manifests.prometheus import NAMESPACE, RENAMED, RENAMED_BY_PART, RENAMED_BY_QUERY, Monitoring, configuration, prometheus
from penstock.infra.manifests.scraped_job import ScrapedJob
from penstock.infra.node_alarms import RUNBOOK
from penstock.infra.parts.nodes import DaemonSetRequest
from penstock.infra.parts.observability import Alarms
from penstock.jobs.driver import gauges
from penstock.jobs.driver.lag import LAG_RECORDS, STARTED_S
from penstock.jobs.driver.session import FIXED
from penstock.jobs.stream import skew
from penstock.scripts.layout import ROOT

JOBS = (
    ScrapedJob("user-credit", "user-credit-driver-0.user-credit-driver.job-user-credit.svc", bounded=False),
    ScrapedJob("backfill", "backfill-driver-0.backfill-driver.job-backfill.svc", bounded=True),
)
TOLERATIONS = ({"key": "CriticalAddonsOnly", "operator": "Exists"},)
PENDING_MINUTES = 4
MONITORING = Monitoring("production", "us-east-1", JOBS, Alarms(), PENDING_MINUTES, None, {"penstock.dev/role": "system"}, TOLERATIONS)
WORKSPACE = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1/"


def _object(kind: str, monitoring: Monitoring = MONITORING, name: str = "prometheus") -> dict[str, Any]:
    named = [manifest for manifest in prometheus(monitoring) if manifest["metadata"]["name"] in (name, NAMESPACE)]
    (manifest_of_kind,) = (manifest for manifest in named if manifest["kind"] == kind)
    return manifest_of_kind


def _pod(monitoring: Monitoring = MONITORING) -> dict[str, Any]:
    template: dict[str, Any] = _object("Deployment", monitoring)["spec"]["template"]
    return template


def _scraped(name: str) -> dict[str, Any]:
    (scrape_config,) = (one for one in configuration(MONITORING)["scrape_configs"] if one["job_name"] == name)
    return dict(scrape_config)


def _rule(name: str, alarms: Alarms) -> dict[str, Any]:
    (alert_rule,) = (rule for group in rules(alarms, PENDING_MINUTES)["groups"] for rule in group["rules"] if rule["alert"] == name)
    return dict(alert_rule)


@pytest.mark.parametrize("kind", [manifest["kind"] for manifest in prometheus(MONITORING)])
def test_every_object_is_one_by_the_schema_of_kubernetes(kind: str) -> None:
    kubernetes_validate.validate(_object(kind), "1.35", strict=True)


def test_every_driver_is_asked_for_its_own_metrics_and_its_executors() -> None:
    for name, path in (("drivers", "/metrics/prometheus/"), ("executors", "/metrics/executors/prometheus/")):
        scraped = _scraped(name)
        assert scraped["metrics_path"] == path
        assert scraped["static_configs"] == [
            {"targets": [f"{job.driver_address}:4040"], "labels": {"penstock_job": job.name, "bounded": str(job.bounded).lower()}}
            for job in JOBS
        ]


def test_the_driver_serves_what_is_asked() -> None:
    assert FIXED["spark.metrics.conf.*.sink.prometheusServlet.class"].endswith(".PrometheusServlet")
    assert _scraped("drivers")["metrics_path"] == FIXED["spark.metrics.conf.*.sink.prometheusServlet.path"] + "/"
    assert FIXED["spark.ui.prometheus.enabled"] == "true"
    assert FIXED["spark.sql.streaming.metricsEnabled"] == "true"


@pytest.mark.parametrize(("gauge", "metric"), [(LAG_RECORDS, "penstock_lag_records"), (STARTED_S, "penstock_started_seconds")])
def test_the_drivers_own_gauges_are_found_under_the_name_that_spark_gives_them(gauge: str, metric: str) -> None:
    spelled = re.sub(r"[^a-zA-Z0-9]", "_", f"{FIXED['spark.metrics.namespace']}.driver.DAGScheduler.{gauge}")
    assert RENAMED[f"metrics_{spelled}_Value"] == metric


@pytest.mark.parametrize(
    ("gauge", "of", "metric"),
    [
        (gauges.WATERMARK_MS, "", "penstock_event_time_watermark_milliseconds"),
        (gauges.WATERMARK_MS, ".clicks.events-0", "penstock_event_time_watermark_milliseconds"),
        (gauges.ROWS, ".clicks.events-0", "penstock_batch_rows"),
        (gauges.LATE_ROWS, ".clicks", "penstock_late_rows"),
        (gauges.TOLERATED_ROWS, ".clicks", "penstock_tolerated_rows"),
        (skew.KEYED_ROWS, ".users", "penstock_keyed_rows"),
        (skew.HOTTEST_KEY_ROWS, ".users", "penstock_hottest_key_rows"),
    ],
)
def test_a_gauge_of_a_part_says_with_a_label_of_which(gauge: str, of: str, metric: str) -> None:
    spelled = re.sub(r"[^a-zA-Z0-9]", "_", f"metrics_{FIXED['spark.metrics.namespace']}.driver.DAGScheduler.{gauge}{of}") + "_Value"
    (renamed,) = [(new, match[1]) for regex, new in RENAMED_BY_PART.items() if (match := re.fullmatch(regex, spelled))]
    assert renamed == (metric, re.sub(r"[^a-zA-Z0-9]", "_", of[1:]) or None)
    labels = [one for one in _scraped("drivers")["metric_relabel_configs"] if one.get("target_label") == "of"]
    assert [one["regex"] for one in labels] == list(RENAMED_BY_PART)


def test_a_query_of_any_name_has_the_same_metrics() -> None:
    for query in ("user_credit", "user_credit_counts"):
        spelled = f"metrics_penstock_driver_spark_streaming_{query}_states_usedBytes_Value"
        renamed = [(new, match[1]) for regex, new in RENAMED_BY_QUERY.items() if (match := re.fullmatch(regex, spelled))]
        assert renamed == [("penstock_state_bytes", query)]
    labels = [one for one in _scraped("drivers")["metric_relabel_configs"] if one.get("target_label") == "query"]
    assert [one["regex"] for one in labels] == list(RENAMED_BY_QUERY)


def test_every_pod_of_fluent_bit_is_asked() -> None:
    request = DaemonSetRequest.model_validate({"name": "fluent-bit", "memory": "128Mi"})
    manifests = fluent_bit.fluent_bit(fluent_bit.Logging("production", "us-east-1", (), "/group", "/karpenter", None, request))
    (service,) = (manifest for manifest in manifests if manifest["kind"] == "Service")
    (dns_config,) = _scraped("fluent-bit")["dns_sd_configs"]
    assert dns_config["names"] == [f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"]
    assert service["spec"]["clusterIP"] == "None"
    assert dns_config["port"] == service["spec"]["ports"][0]["port"]


def test_each_controller_of_karpenter_is_asked_where_its_chart_serves_metrics() -> None:
    service = _object("Service", name="karpenter-metrics")
    kubernetes_validate.validate(service, "1.35", strict=True)
    (dns_config,) = _scraped("karpenter")["dns_sd_configs"]
    assert dns_config["names"] == ["karpenter-metrics.kube-system.svc"]
    assert service["metadata"]["namespace"] == karpenter_settings.NAMESPACE == "kube-system"
    # One address for each pod: only the leader has the metrics of pools and pods.
    assert service["spec"]["clusterIP"] == "None"
    # As the chart labels the pods of a release named like the chart itself.
    assert service["spec"]["selector"] == {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}
    spec = load("production").spec
    assert spec.nodes is not None and spec.eks is not None
    values = controller_values(spec.nodes, spec.eks, Place("us-east-1", "penstock-production", "queue", {}))
    assert values["controller"]["metrics"]["port"] == dns_config["port"] == service["spec"]["ports"][0]["port"]


def test_no_metric_that_an_alert_or_a_panel_looks_at_is_dropped() -> None:
    (dropped,) = _scraped("karpenter")["metric_relabel_configs"]
    assert (dropped["action"], dropped["source_labels"]) == ("drop", ["__name__"])
    exprs = [rule["expr"] for group in rules(Alarms(), PENDING_MINUTES)["groups"] for rule in group["rules"]]
    names = {name for expr in [*exprs, *(panel.expr for panel in PANELS)] for name in re.findall(r"karpenter_\w+", expr)}
    assert names and not [name for name in names if re.fullmatch(dropped["regex"], name)]


def test_a_pod_waits_as_long_as_the_environment_says_before_it_is_told() -> None:
    assert _rule("PenstockPodsPending", Alarms())["for"] == f"{PENDING_MINUTES}m"


def test_the_limits_of_the_alarms_are_those_of_the_alerts() -> None:
    alarms = Alarms.model_validate({"lagRecords": 7, "failedBatches": 2, "restarts": 5, "silent": "20m"})
    assert _rule("PenstockLag", alarms)["expr"] == "penstock_lag_records > 7"
    assert _rule("PenstockRestarts", alarms)["expr"].endswith("> 5")
    assert _rule("PenstockFailedTasks", alarms)["expr"].endswith(">= 8")
    assert _rule("PenstockDriverSilent", alarms)["for"] == "20m"


def test_without_a_workspace_nothing_is_written_anywhere() -> None:
    assert "remote_write" not in configuration(MONITORING)


def test_what_is_written_to_a_workspace_is_signed() -> None:
    (written,) = configuration(replace(MONITORING, workspace=WORKSPACE))["remote_write"]
    assert written["url"] == f"{WORKSPACE}api/v1/remote_write"
    assert written["sigv4"] == {"region": "us-east-1"}


def test_it_runs_where_the_systems_pods_run_and_the_kubernetes_api_is_asked_nothing() -> None:
    spec = _pod()["spec"]
    assert spec["nodeSelector"] == {"penstock.dev/role": "system"}
    assert spec["tolerations"] == list(TOLERATIONS)
    assert spec["automountServiceAccountToken"] is False
    assert not [manifest["kind"] for manifest in prometheus(MONITORING) if "Role" in manifest["kind"]]


def test_its_namespace_is_restricted_and_the_one_that_drivers_let_in() -> None:
    metadata = _object("Namespace")["metadata"]
    assert metadata["name"] == NAMESPACE == OBSERVABILITY_NAMESPACE
    assert metadata["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    spec = _pod()["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_nobody_may_come_in_and_it_may_go_to_what_it_reads() -> None:
    spec = _object("NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in spec
    ports = sorted({port["port"] for rule in spec["egress"] for port in rule["ports"]})
    assert ports == [53, 80, 443, 2020, 4040, 8080]


def test_its_files_are_those_that_it_is_started_with() -> None:
    data = _object("ConfigMap")["data"]
    assert json.loads(data["prometheus.yaml"]) == configuration(MONITORING)
    assert json.loads(data["rules.yaml"]) == rules(Alarms(), PENDING_MINUTES)
    assert configuration(MONITORING)["rule_files"] == ["/etc/prometheus/rules.yaml"]
    (container,) = _pod()["spec"]["containers"]
    assert "--config.file=/etc/prometheus/prometheus.yaml" in container["args"]
    folders = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert folders == {"configuration": "/etc/prometheus", "data": "/prometheus"}


def test_another_configuration_is_another_pod_but_a_url_that_only_terraform_knows_is_not_hashed() -> None:
    def annotations(monitoring: Monitoring) -> dict[str, str]:
        pod_annotations: dict[str, str] = _pod(monitoring)["metadata"]["annotations"]
        return pod_annotations

    key = "penstock.dev/configuration"
    one, other = (replace(MONITORING, workspace=f"${{TfToken[TOKEN.{number}]}}") for number in (7, 9))
    assert annotations(one)[key] == annotations(other)[key]
    assert annotations(one)["penstock.dev/workspace"] == one.workspace
    assert annotations(one)[key] != annotations(MONITORING)[key]
    fewer = replace(MONITORING, alarms=Alarms.model_validate({"lagRecords": 7}))
    assert annotations(fewer)[key] != annotations(MONITORING)[key]


def test_every_alert_has_a_section_in_the_runbook() -> None:
    headings = re.findall(r"^## (\w+)$", (ROOT / RUNBOOK).read_text(encoding="utf-8"), flags=re.MULTILINE)
    alerts = [rule for group in rules(Alarms(), PENDING_MINUTES)["groups"] for rule in group["rules"]]
    assert headings == [rule["alert"] for rule in alerts]
    assert [rule["annotations"]["runbook"] for rule in alerts] == [f"{RUNBOOK}#{name.lower()}" for name in headings]


def test_a_commit_is_missed_only_after_three_of_the_longest_triggers() -> None:
    def expr(*triggers_ms: int) -> str:
        jobs = [ScrapedJob(f"j{ms}", "address", bounded=False, trigger_ms=ms) for ms in triggers_ms]
        (rule,) = (
            one
            for group in rules(Alarms(), PENDING_MINUTES, jobs)["groups"]
            for one in group["rules"]
            if one["alert"] == "PenstockNoCommit"
        )
        return str(rule["expr"])

    assert "[10m]" in expr() and "[10m]" in expr(10_000, 200_000)
    assert "[180m]" in expr(10_000, 3_600_000)
