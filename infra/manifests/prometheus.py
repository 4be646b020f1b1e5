"""Prometheus in the cluster: it scrapes drivers, Karpenter and Fluent Bit, and evaluates `penstock.infra.manifests.alerting_rules`.

A driver has a name in DNS that outlives its pods, so a list of the environment's jobs suffices: the Kubernetes API is not called, and a
missing driver appears as a target that is down. The driver also serves the metrics of its executors, which have no endpoint.

Source: Prometheus' documentation, "Configuration", "Alerting rules"; Spark's, "Monitoring", for the paths and names of metrics;
Karpenter's, version 1.14, "Metrics".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.infra import karpenter_settings
from penstock.infra.manifests import fluent_bit
from penstock.infra.manifests.alerting_rules import rules
from penstock.infra.manifests.deployed_job import OBSERVABILITY_NAMESPACE, UI_PORT
from penstock.infra.manifests.namespace import RESTRICTED
from penstock.infra.manifests.scraped_job import JOB_LABEL, READING, ScrapedJob
from penstock.infra.parts.observability import Alarms

NAME = "prometheus"
NAMESPACE = OBSERVABILITY_NAMESPACE
SERVICE_ACCOUNT = NAME
IMAGE = "quay.io/prometheus/prometheus:v3.13.5"
PORT = 9090
CONFIGURATION, RULES = "prometheus.yaml", "rules.yaml"
# The user `nobody` of the image.
UID = 65_534
# Local retention; a workspace keeps data longer, and outlives the pod. 2 GiB of memory suffice for some hundred thousand series.
RETENTION, RETENTION_SIZE, VOLUME = "24h", "8GB", "10Gi"
REQUESTS = {"cpu": "250m", "memory": "1Gi"}
LIMITS = {"memory": "2Gi"}
SCRAPE_INTERVAL = "30s"

# Names that Spark's servlet gives to the gauges of jobs/driver/lag.py and of a streaming query, in the namespace `penstock` that
# jobs/driver/session.py sets: dots become underscores, and each gauge appears twice, as _Number and as _Value. Measured on PySpark 4.3.0.
_PREFIX = "metrics_penstock_driver_"
RENAMED = {
    f"{_PREFIX}DAGScheduler_penstock_lagRecords_Value": "penstock_lag_records",
    f"{_PREFIX}DAGScheduler_penstock_startedSeconds_Value": "penstock_started_seconds",
}
# Spark's gauges of a query. A driver may run several: the name is the label `query`, without which their series would be one.
RENAMED_BY_QUERY = {
    f"{_PREFIX}spark_streaming_(.+)_{gauge}_Value": metric
    for gauge, metric in {
        "inputRate_total": "penstock_input_rows_per_second",
        "processingRate_total": "penstock_processed_rows_per_second",
        "latency": "penstock_batch_milliseconds",
        "eventTime_watermark": "penstock_watermark_milliseconds",
        "states_usedBytes": "penstock_state_bytes",
    }.items()
}
# Gauges of jobs/driver/gauges.py and jobs/stream/skew.py, one per input, partition or observation, which is the label `of`.
_BY_PART = {
    "watermarkMs": "penstock_event_time_watermark_milliseconds",
    "rows": "penstock_batch_rows",
    "lateRows": "penstock_late_rows",
    "toleratedRows": "penstock_tolerated_rows",
    "keyedRows": "penstock_keyed_rows",
    "hottestKeyRows": "penstock_hottest_key_rows",
}
RENAMED_BY_PART = {f"{_PREFIX}DAGScheduler_penstock_{gauge}(?:_(.+))?_Value": metric for gauge, metric in _BY_PART.items()}
_READING = f"{_PREFIX}DAGScheduler_penstock_reading_"
# What follows the name of a job in those that its gauges have in a session.
_OF_JOB = f"(?:lagRecords|startedSeconds|(?:{'|'.join(_BY_PART)})(?:_.+)?)_Value"
# The chart's own Service has one address for the leader and its standby, only the first of which has a pool's or a pod's metrics.
KARPENTER_SERVICE = "karpenter-metrics"


@dataclass(frozen=True)
class Monitoring:
    """The settings of Prometheus.

    Args:
        environment: its name.
        region: AWS region of the workspace.
        jobs: whose drivers are scraped.
        alarms: the environment's limits.
        pending_minutes: for which a pod may wait for its node.
        workspace: URL of a workspace of Amazon Managed Service for Prometheus; None: its data are lost with its pod.
        node_selector: labels of the nodes that it may run on.
        tolerations: of these nodes' taints, in the form of the Kubernetes API.
        karpenter: whether Karpenter is the stacks' own; that of an existing cluster is its owners' to watch.
        image: of its container.
    """

    environment: str
    region: str
    jobs: Sequence[ScrapedJob]
    alarms: Alarms
    pending_minutes: int
    workspace: str | None
    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, Any]]
    karpenter: bool = True
    image: str = IMAGE


def prometheus(monitoring: Monitoring) -> list[dict[str, Any]]:
    """All its objects, in an order in which they can be applied."""
    # JSON is valid YAML.
    files = {
        CONFIGURATION: json.dumps(configuration(monitoring), indent=2),
        RULES: json.dumps(
            rules(monitoring.alarms, monitoring.pending_minutes if monitoring.karpenter else None, monitoring.jobs), indent=2
        ),
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {**_labels(), **RESTRICTED}}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(), "automountServiceAccountToken": False},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(), "data": files},
        _service(),
        *([_karpenter_service()] if monitoring.karpenter else []),
        _network_policy(),
        _deployment(monitoring, files),
    ]


def configuration(monitoring: Monitoring) -> dict[str, Any]:
    """Prometheus' configuration."""
    written: dict[str, Any] = {
        "global": {
            "scrape_interval": SCRAPE_INTERVAL,
            "evaluation_interval": SCRAPE_INTERVAL,
            "external_labels": {"environment": monitoring.environment},
        },
        "rule_files": [f"/etc/{NAME}/{RULES}"],
        "scrape_configs": [
            _drivers("drivers", "/metrics/prometheus/", monitoring.jobs),
            _drivers("executors", "/metrics/executors/prometheus/", monitoring.jobs),
            _fluent_bit(),
            *([_karpenter()] if monitoring.karpenter else []),
        ],
    }
    if monitoring.workspace is not None:
        # Signed with the pod's own role.
        url = f"{monitoring.workspace}api/v1/remote_write"
        queue = {"max_samples_per_send": 1000, "max_shards": 10}
        written["remote_write"] = [{"url": url, "sigv4": {"region": monitoring.region}, "queue_config": queue}]
    return written


def _drivers(name: str, path: str, jobs: Sequence[ScrapedJob]) -> dict[str, Any]:
    targets = [
        {
            "targets": [f"{job.driver_address}:{UI_PORT}"],
            "labels": {JOB_LABEL: job.name, "bounded": str(job.bounded).lower()},
        }
        for job in jobs
    ]
    # The labels first: they are extracted from the name that is replaced.
    labels = [
        {"source_labels": ["__name__"], "regex": regex, "target_label": label, "replacement": "$1"}
        for label, regexes in (("of", RENAMED_BY_PART), ("query", RENAMED_BY_QUERY))
        for regex in regexes
    ]
    of_sessions = [relabelling for job in jobs for relabelling in _of_members(job.members)]
    renamed = (
        of_sessions
        + labels
        + [
            {"source_labels": ["__name__"], "regex": regex, "target_label": "__name__", "replacement": replacement}
            for regex, replacement in (RENAMED | RENAMED_BY_PART | RENAMED_BY_QUERY).items()
        ]
    )
    # Each gauge appears twice, with the same value.
    twice = {"source_labels": ["__name__"], "regex": f"{_PREFIX}.+_Number", "action": "drop"}
    # Spark's types are unknown to Prometheus, and its application id would make each restart a new series.
    own = {"regex": "application_id|application_name", "action": "labeldrop"}
    return {
        "job_name": name,
        "metrics_path": path,
        # Spark's response has no content type of a known format.
        "fallback_scrape_protocol": "PrometheusText0.0.4",
        "static_configs": targets,
        "metric_relabel_configs": [twice, *renamed, own],
    }


def _of_members(members: Sequence[str]) -> list[dict[str, Any]]:
    """Of the gauges of jobs in a session: the label with the job's name in place of the session's, and the names of a driver of one job.

    Spark's servlet makes underscores of what is neither a letter nor a digit, so that the name of a job may begin as another one's does: of
    a gauge the longest name is taken first, after which it has no job's name; of a query, which keeps its name, last.
    """
    longest_first = sorted(members, key=len, reverse=True)
    made = {job: re.sub(r"[^a-zA-Z0-9]", "_", job) for job in members}
    gauges = [
        relabelling
        for job in longest_first
        for relabelling in (
            _replaced(f"{_PREFIX}DAGScheduler_penstock_job_{made[job]}_{_OF_JOB}", JOB_LABEL, job),
            _replaced(f"({_PREFIX}DAGScheduler_penstock)_job_{made[job]}_({_OF_JOB})", "__name__", "${1}_${2}"),
            _replaced(f"{_READING}{made[job]}_Value", JOB_LABEL, job),
            _replaced(f"{_READING}{made[job]}_Value", "__name__", READING),
        )
    ]
    return gauges + [_replaced(f"{_PREFIX}spark_streaming_{made[job]}(_.+)?_.+", JOB_LABEL, job) for job in reversed(longest_first)]


def _replaced(regex: str, label: str, replacement: str) -> dict[str, Any]:
    return {"source_labels": ["__name__"], "regex": regex, "target_label": label, "replacement": replacement}


def _fluent_bit() -> dict[str, Any]:
    name = f"{fluent_bit.DAEMON_SET}.{fluent_bit.NAMESPACE}.svc"
    return {
        "job_name": "fluent-bit",
        "metrics_path": "/api/v2/metrics/prometheus",
        "fallback_scrape_protocol": "PrometheusText0.0.4",
        "dns_sd_configs": [{"names": [name], "type": "A", "port": fluent_bit.PORT}],
    }


def _karpenter() -> dict[str, Any]:
    name = f"{KARPENTER_SERVICE}.{karpenter_settings.NAMESPACE}.svc"
    return {
        "job_name": "karpenter",
        "metrics_path": "/metrics",
        "dns_sd_configs": [{"names": [name], "type": "A", "port": karpenter_settings.METRICS_PORT}],
        # Histograms of each kind of object and request; what the alerts and the dashboard look at are gauges and counters.
        "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": ".+_bucket", "action": "drop"}],
    }


def _karpenter_service() -> dict[str, Any]:
    """Headless: through DNS, each of Karpenter's controllers is found, including one that is not ready."""
    ports = [{"name": "http-metrics", "port": karpenter_settings.METRICS_PORT, "protocol": "TCP"}]
    metadata = {"name": KARPENTER_SERVICE, "namespace": karpenter_settings.NAMESPACE, "labels": _labels()}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(karpenter_settings.SELECTOR), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _service() -> dict[str, Any]:
    ports = [{"name": "http", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(), "spec": {"selector": _selector(), "ports": ports}}


def _network_policy() -> dict[str, Any]:
    """No pod may connect to it, only `kubectl port-forward`; it connects to DNS, to its targets and to AWS."""
    kube_system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    logging = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": fluent_bit.NAMESPACE}}}
    karpenter = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": karpenter_settings.NAMESPACE}},
        "podSelector": {"matchLabels": dict(karpenter_settings.SELECTOR)},
    }
    drivers = {
        "namespaceSelector": {"matchExpressions": [{"key": "penstock.dev/job", "operator": "Exists"}]},
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "driver"}},
    }
    agent = [{"ipBlock": {"cidr": cidr}} for cidr in ("169.254.170.23/32", "fd00:ec2::23/128")]
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [
            {"to": [kube_system], "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]},
            {"to": [drivers], "ports": [{"protocol": "TCP", "port": UI_PORT}]},
            {"to": [logging], "ports": [{"protocol": "TCP", "port": fluent_bit.PORT}]},
            {"to": [karpenter], "ports": [{"protocol": "TCP", "port": karpenter_settings.METRICS_PORT}]},
            {"ports": [{"protocol": "TCP", "port": 443}]},
            {"to": agent, "ports": [{"protocol": "TCP", "port": 80}]},
        ],
    }
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": _metadata(), "spec": spec}


def _deployment(monitoring: Monitoring, files: Mapping[str, str]) -> dict[str, Any]:
    # It reads its configuration once: a changed one needs a new pod. The hash excludes the workspace's URL, known only to Terraform.
    text = "\0".join(files[name].replace(monitoring.workspace or "\0", "") for name in sorted(files))
    annotations = {"penstock.dev/configuration": hashlib.sha256(text.encode()).hexdigest()[:16]}
    if monitoring.workspace is not None:
        annotations["penstock.dev/workspace"] = monitoring.workspace
    pod: dict[str, Any] = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [dict(toleration) for toleration in monitoring.tolerations],
        "nodeSelector": dict(monitoring.node_selector),
        "containers": [_container(monitoring.image)],
        "volumes": [
            {"name": "configuration", "configMap": {"name": NAME, "defaultMode": 0o444}},
            {"name": "data", "emptyDir": {"sizeLimit": VOLUME}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _selector()},
            "template": {"metadata": {"labels": _labels(), "annotations": annotations}, "spec": pod},
        },
    }


def _container(image: str) -> dict[str, Any]:
    arguments = [
        f"--config.file=/etc/{NAME}/{CONFIGURATION}",
        f"--storage.tsdb.path=/{NAME}",
        f"--storage.tsdb.retention.time={RETENTION}",
        f"--storage.tsdb.retention.size={RETENTION_SIZE}",
    ]
    return {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": dict(REQUESTS), "limits": dict(LIMITS)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": UID,
            "capabilities": {"drop": ["ALL"]},
        },
        "livenessProbe": {"httpGet": {"path": "/-/healthy", "port": PORT}, "timeoutSeconds": 5, "periodSeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": PORT}, "timeoutSeconds": 5, "periodSeconds": 5},
        "volumeMounts": [
            {"name": "configuration", "mountPath": f"/etc/{NAME}", "readOnly": True},
            {"name": "data", "mountPath": f"/{NAME}"},
        ],
    }


def _metadata() -> dict[str, Any]:
    return {"name": NAME, "namespace": NAMESPACE, "labels": _labels()}


def _selector() -> dict[str, str]:
    return {"app.kubernetes.io/name": NAME}


def _labels() -> dict[str, str]:
    return {**_selector(), "app.kubernetes.io/part-of": "penstock"}
