"""Fluent Bit on every node: it sends the logs of the jobs and of Karpenter to their log groups in CloudWatch and indexes in OpenSearch.

Each job has its own pipeline, so that a job with many records does not delay the others, and all destinations are known before anything
runs.
Pod and container are parsed from the file name, without calls to the Kubernetes API.

Source: Fluent Bit's manual, 4.2: YAML configuration, "Tail", "Kubernetes", "Record Modifier", "Amazon CloudWatch", "OpenSearch".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.infra import karpenter_settings
from penstock.infra.errors import LogsTooSmall
from penstock.infra.job_alarms import JOB_FIELD
from penstock.infra.manifests.deployed_job import OBSERVABILITY_NAMESPACE
from penstock.infra.manifests.deployed_job import namespace as job_namespace
from penstock.infra.manifests.pod import tolerations
from penstock.infra.parts.nodes import DaemonSetRequest

# Its entry among the environment's daemonSets.
DAEMON_SET = "fluent-bit"
NAMESPACE = "logging"
SERVICE_ACCOUNT = DAEMON_SET
# Supports credentials of EKS Pod Identity since 4.0. The image is for amd64 and arm64.
IMAGE = "cr.fluentbit.io/fluent/fluent-bit:4.2.3"
PORT = 2020
CONFIGURATION = "fluent-bit.yaml"
# The offsets in the log files outlive the pod, so that an update of Fluent Bit neither loses nor repeats records.
STATE_FOLDER = "/var/lib/penstock-fluent-bit"
LOG_FOLDER = "/var/log"
# Memory of Fluent Bit besides its buffers, and the desired buffer per job. Below the minimum, a single long line would block it.
BASE_MIB, MOST_BUFFER_MIB, LEAST_BUFFER_MIB = 48, 16, 2
# Fields of a record, in addition to those added here. A driver's events have others, some with a name per topic and partition: in
# OpenSearch
# each would be a field of the mapping, which is limited to 1,000 per index. They stay in `log`, the original line.
FIELDS = ("time", "stream", "log", "kubernetes", "event", "query", "batch", "rows", "durationMs", "lagRecords")
RETRIES = 10
# Karpenter's pipeline: no job's name has a dot, so neither its files nor its index are a job's.
KARPENTER = "karpenter.controller"
# Fields of Karpenter's records, as for the jobs. Others have a name per kind of object. Without `time`, which its own records have too: the
# record would have it twice.
KARPENTER_FIELDS = ("stream", "log", "kubernetes", "level", "message", "controller", "error")


@dataclass(frozen=True)
class Search:
    """The OpenSearch endpoint of the logs.

    Args:
        host: of the OpenSearch domain.
        port: of its HTTPS endpoint.
        signed: whether requests are signed with the pod's role.
    """

    host: str
    port: int = 443
    signed: bool = True


@dataclass(frozen=True)
class Logging:
    """The settings of Fluent Bit.

    Args:
        environment: its name.
        region: AWS region of the log groups and of the domain.
        jobs: names of those that have a driver of their own, and of the sessions.
        log_group: prefix of the names of their log groups.
        karpenter_log_group: the log group of Karpenter; None: an existing cluster's own, whose log is its owners'.
        search: None: the logs go to CloudWatch alone.
        request: its pod's requests and nodes, as the plans have subtracted them from every node.
        image: of its container.
        sessions: those of `jobs` that are sessions: their records say themselves which job they are of.
    """

    environment: str
    region: str
    jobs: Sequence[str]
    log_group: str
    karpenter_log_group: str | None
    search: Search | None
    request: DaemonSetRequest
    image: str = IMAGE
    sessions: Sequence[str] = ()


def fluent_bit(logging: Logging) -> list[dict[str, Any]]:
    """All its objects, in an order in which they can be applied.

    Raises:
        LogsTooSmall: INF-062.
    """
    text = json.dumps(configuration(logging), indent=2)
    return [
        _namespace(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(SERVICE_ACCOUNT), "automountServiceAccountToken": False},
        # JSON is valid YAML.
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(DAEMON_SET), "data": {CONFIGURATION: text}},
        _service(),
        _network_policy(logging),
        _daemon_set(logging, text),
    ]


def configuration(logging: Logging) -> dict[str, Any]:
    """Fluent Bit's configuration.

    Raises:
        LogsTooSmall: INF-062.
    """
    pipelines = [_pipeline(logging, job, buffer_mib(logging)) for job in logging.jobs]
    if logging.karpenter_log_group is not None:
        pipelines.append(_karpenter(logging, logging.karpenter_log_group, buffer_mib(logging)))
    return {
        "service": {
            "flush": 5,
            "grace": 30,
            "log_level": "warn",
            "http_server": "on",
            "http_listen": "0.0.0.0",
            "http_port": PORT,
            "health_check": "on",
        },
        "pipeline": {part: [one for pipeline in pipelines for one in pipeline[part]] for part in ("inputs", "filters", "outputs")},
    }


def buffer_mib(logging: Logging) -> int:
    """The buffer of the records of a job, or of Karpenter, that wait to be sent, in MiB; while it is full, the file is not read.

    Raises:
        LogsTooSmall: INF-062.
    """
    sources = len(logging.jobs) + 1
    share = min(MOST_BUFFER_MIB, (logging.request.memory - BASE_MIB) // sources)
    if share < LEAST_BUFFER_MIB:
        need = f"{BASE_MIB} MiB, {LEAST_BUFFER_MIB} MiB for each of {len(logging.jobs)} jobs, and as much for Karpenter"
        raise LogsTooSmall(
            path=f"nodes.daemonSets.{DAEMON_SET}.memory",
            given=f"{logging.request.memory} MiB",
            need=need,
            fix=f"memory: {BASE_MIB + sources * LEAST_BUFFER_MIB}Mi, or more",
        )
    return share


def _pipeline(logging: Logging, job: str, buffer: int) -> dict[str, list[dict[str, Any]]]:
    tag = f"job.{job}"
    # The names of the pod, its namespace and the container; none of them contains an underscore.
    files = f"*_{job_namespace(job)}_*.log"
    environment = f"environment {logging.environment}"
    shared = job in logging.sessions
    fields, record = ((*FIELDS, JOB_FIELD), [environment]) if shared else (FIELDS, [f"{JOB_FIELD} {job}", environment])
    return {
        "inputs": [_input(job, files, f"{tag}.*", buffer)],
        "filters": _filters(tag, fields, record),
        "outputs": _outputs(logging, job, f"{tag}.*", f"{logging.log_group}/{job}"),
    }


def _karpenter(logging: Logging, log_group: str, buffer: int) -> dict[str, list[dict[str, Any]]]:
    """Of its controllers, which run on the system nodes; on others there are no such files."""
    tag = "karpenter"
    files = f"{karpenter_settings.RELEASE}-*_{karpenter_settings.NAMESPACE}_{karpenter_settings.CONTAINER}-*.log"
    return {
        "inputs": [_input(KARPENTER, files, f"{tag}.*", buffer)],
        "filters": _filters(tag, KARPENTER_FIELDS, [f"environment {logging.environment}"]),
        "outputs": _outputs(logging, KARPENTER, f"{tag}.*", log_group),
    }


def _filters(tag: str, fields: Sequence[str], record: list[str]) -> list[dict[str, Any]]:
    match = f"{tag}.*"
    return [
        {
            "name": "kubernetes",
            "match": match,
            "kube_tag_prefix": f"{tag}.var.log.containers.",
            "use_tag_for_meta": "on",
            "merge_log": "on",
            "keep_log": "on",
        },
        {"name": "record_modifier", "match": match, "allowlist_key": list(fields), "record": record},
    ]


def _outputs(logging: Logging, source: str, match: str, log_group: str) -> list[dict[str, Any]]:
    outputs = [_to_cloudwatch(logging, source, match, log_group)]
    if logging.search is not None:
        outputs.append(_to_open_search(logging, logging.search, source, match))
    return outputs


def _input(source: str, files: str, tag: str, buffer: int) -> dict[str, Any]:
    return {
        "name": "tail",
        "alias": f"{source}-files",
        "tag": tag,
        "path": f"{LOG_FOLDER}/containers/{files}",
        "multiline.parser": "cri",
        "db": f"{STATE_FOLDER}/{source}.db",
        "db.locking": "true",
        "mem_buf_limit": f"{buffer}MB",
        "skip_long_lines": "on",
        "read_from_head": "true",
        "refresh_interval": 5,
        "rotate_wait": 30,
    }


def _to_cloudwatch(logging: Logging, source: str, match: str, log_group: str) -> dict[str, Any]:
    return {
        "name": "cloudwatch_logs",
        "alias": f"{source}-cloudwatch",
        "match": match,
        "region": logging.region,
        "log_group_name": log_group,
        "log_stream_template": "$kubernetes['pod_name'].$kubernetes['container_name']",
        # Used if the pod's name cannot be parsed from the file name.
        "log_stream_prefix": "file-",
        # The observability stack creates the group with its key and retention; a missing one is an error that should be visible.
        "auto_create_group": "false",
        "retry_limit": RETRIES,
    }


def _to_open_search(logging: Logging, search: Search, source: str, match: str) -> dict[str, Any]:
    signed = {"aws_auth": "on", "aws_region": logging.region} if search.signed else {}
    return {
        "name": "opensearch",
        "alias": f"{source}-opensearch",
        "match": match,
        "host": search.host,
        "port": search.port,
        "tls": "on",
        "tls.verify": "on",
        **signed,
        # One index per day: old logs are deleted as whole indexes.
        "logstash_format": "on",
        "logstash_prefix": f"penstock-{source}",
        "logstash_dateformat": "%Y.%m.%d",
        # A record that is resent after a lost response is the same document.
        "generate_id": "on",
        "replace_dots": "on",
        "suppress_type_name": "on",
        "compress": "gzip",
        "retry_limit": RETRIES,
    }


def _namespace() -> dict[str, Any]:
    """The restricted and the baseline Pod Security Standards reject host paths: hence a separate namespace."""
    labels = {**_labels(), "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def _service() -> dict[str, Any]:
    """Headless: through DNS, Prometheus finds each of its pods, including those that are not ready."""
    ports = [{"name": "http", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(DAEMON_SET),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _selector(), "ports": ports},
    }


def _network_policy(logging: Logging) -> dict[str, Any]:
    """Prometheus may scrape it; it connects to DNS, to AWS over HTTPS, and to the EKS Pod Identity agent."""
    scrapers = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": OBSERVABILITY_NAMESPACE}}}
    kube_system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    search = [] if logging.search is None or logging.search.port == 443 else [{"protocol": "TCP", "port": logging.search.port}]
    agent = [{"ipBlock": {"cidr": cidr}} for cidr in ("169.254.170.23/32", "fd00:ec2::23/128")]
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [scrapers], "ports": [{"protocol": "TCP", "port": PORT}]}],
        "egress": [
            {"to": [kube_system], "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]},
            {"ports": [{"protocol": "TCP", "port": 443}, *search]},
            {"to": agent, "ports": [{"protocol": "TCP", "port": 80}]},
        ],
    }
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": _metadata(DAEMON_SET), "spec": spec}


def _daemon_set(logging: Logging, text: str) -> dict[str, Any]:
    request = logging.request
    pod: dict[str, Any] = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "terminationGracePeriodSeconds": 60,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": tolerations(request.tolerations),
        "containers": [_container(request, logging.image)],
        "volumes": [
            {"name": "configuration", "configMap": {"name": DAEMON_SET, "defaultMode": 0o444}},
            {"name": "logs", "hostPath": {"path": LOG_FOLDER, "type": "Directory"}},
            {"name": "state", "hostPath": {"path": STATE_FOLDER, "type": "DirectoryOrCreate"}},
        ],
    }
    if request.node_selector:
        pod["nodeSelector"] = dict(request.node_selector)
    # It reads its configuration once: a changed one needs a new pod. The hash excludes the domain's host, known only to Terraform.
    host = logging.search.host if logging.search is not None else None
    fingerprint = hashlib.sha256(text.replace(host or "\0", "").encode()).hexdigest()[:16]
    annotations = {"penstock.dev/configuration": fingerprint, **({"penstock.dev/search": host} if host is not None else {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(DAEMON_SET),
        "spec": {
            "selector": {"matchLabels": _selector()},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": _labels(), "annotations": annotations}, "spec": pod},
        },
    }


def _container(request: DaemonSetRequest, image: str) -> dict[str, Any]:
    memory = f"{request.memory}Mi"
    requests = {"memory": memory, **({"cpu": f"{request.cpu}m"} if request.cpu else {})}
    return {
        "name": DAEMON_SET,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/fluent-bit/bin/fluent-bit", f"--config=/etc/penstock/{CONFIGURATION}"],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": requests, "limits": {"memory": memory}},
        # Only root can read the log files. Without capabilities, root has no rights beyond those of the files' owner.
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Whether it responds, and whether its outputs succeed: the latter is not fixed by a restart.
        "livenessProbe": {"httpGet": {"path": "/", "port": PORT}, "timeoutSeconds": 5, "periodSeconds": 30},
        "readinessProbe": {"httpGet": {"path": "/api/v1/health", "port": PORT}, "timeoutSeconds": 5, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "configuration", "mountPath": "/etc/penstock", "readOnly": True},
            {"name": "logs", "mountPath": LOG_FOLDER, "readOnly": True},
            {"name": "state", "mountPath": STATE_FOLDER},
        ],
    }


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, "labels": _labels()}


def _selector() -> dict[str, str]:
    return {"app.kubernetes.io/name": DAEMON_SET}


def _labels() -> dict[str, str]:
    return {**_selector(), "app.kubernetes.io/part-of": "penstock"}
