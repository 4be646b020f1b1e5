"""Fluent Bit on every node: it brings the jobs' logs into their log groups in CloudWatch, and into their indexes in OpenSearch.

Each job has a pipeline of its own, so that one that says much does not keep the others' logs back, and what may be written is known
before anything runs. Pod and container are read from the file's name: nothing is asked of the Kubernetes API.

Source: Fluent Bit's manual, 4.2: YAML configuration, "Tail", "Kubernetes", "Record Modifier", "Amazon CloudWatch", "OpenSearch".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.infra.errors import LogsTooSmall
from penstock.infra.job_alarms import JOB_FIELD
from penstock.infra.manifests.deployed_job import OBSERVABILITY_NAMESPACE
from penstock.infra.manifests.deployed_job import namespace as job_namespace
from penstock.infra.manifests.pod import tolerations
from penstock.infra.parts.nodes import DaemonSetRequest

# The entry of the environment's daemonSets that this is.
DAEMON_SET = "fluent-bit"
NAMESPACE = "logging"
SERVICE_ACCOUNT = DAEMON_SET
# From 4.0 on it takes EKS Pod Identity's credentials. The image is for amd64 and arm64.
IMAGE = "cr.fluentbit.io/fluent/fluent-bit:4.2.3"
PORT = 2020
CONFIGURATION = "fluent-bit.yaml"
# The offsets up to which the log files are read: they outlive the pod, so that an update of Fluent Bit loses and repeats nothing.
STATE_FOLDER = "/var/lib/penstock-fluent-bit"
LOG_FOLDER = "/var/log"
# What Fluent Bit takes beside its buffers, and what a buffer of a job should have. Below the least a single long line would stop it.
BASE_MIB, MOST_BUFFER_MIB, LEAST_BUFFER_MIB = 48, 16, 2
# Fields of a record, beside those that are added here. A driver's events have others, some with a name for each topic and partition:
# in OpenSearch each would be a field of the mapping, of which an index takes 1,000. They stay in `log`, the line as it was written.
FIELDS = ("time", "stream", "log", "kubernetes", "event", "batch", "rows", "durationMs", "lagRecords")
RETRIES = 10


@dataclass(frozen=True)
class Search:
    """Where the logs are searched.

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
    """What Fluent Bit is to do.

    Args:
        environment: its name.
        region: AWS region of the log groups and of the domain.
        jobs: their names.
        log_group: what the names of their log groups begin with.
        search: None: the logs go to CloudWatch alone.
        request: what its pod asks of each node, and of which nodes: what the plans have taken off every node.
    """

    environment: str
    region: str
    jobs: Sequence[str]
    log_group: str
    search: Search | None
    request: DaemonSetRequest


def fluent_bit(logging: Logging) -> list[dict[str, Any]]:
    """Every object of it, in an order in which they can be applied.

    Raises:
        LogsTooSmall: INF-062.
    """
    text = json.dumps(configuration(logging), indent=2)
    return [
        _namespace(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(SERVICE_ACCOUNT), "automountServiceAccountToken": False},
        # JSON is YAML too.
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
    """What a job's records may take while they wait to be sent, in MiB; when it is full the file is read no further until it is not.

    Raises:
        LogsTooSmall: INF-062.
    """
    jobs = max(1, len(logging.jobs))
    share = min(MOST_BUFFER_MIB, (logging.request.memory - BASE_MIB) // jobs)
    if share < LEAST_BUFFER_MIB:
        need = f"{BASE_MIB} MiB and {LEAST_BUFFER_MIB} MiB for each of {jobs} jobs"
        raise LogsTooSmall(
            path=f"nodes.daemonSets.{DAEMON_SET}.memory",
            given=f"{logging.request.memory} MiB",
            need=need,
            fix=f"memory: {BASE_MIB + jobs * LEAST_BUFFER_MIB}Mi, or more",
        )
    return share


def _pipeline(logging: Logging, job: str, buffer: int) -> dict[str, list[dict[str, Any]]]:
    tag = f"job.{job}"
    match = f"{tag}.*"
    outputs = [_to_cloudwatch(logging, job, match)]
    if logging.search is not None:
        outputs.append(_to_open_search(logging, logging.search, job, match))
    return {
        "inputs": [_input(job, match, buffer)],
        "filters": [
            {
                "name": "kubernetes",
                "match": match,
                "kube_tag_prefix": f"{tag}.var.log.containers.",
                "use_tag_for_meta": "on",
                "merge_log": "on",
                "keep_log": "on",
            },
            {
                "name": "record_modifier",
                "match": match,
                "allowlist_key": list(FIELDS),
                "record": [f"{JOB_FIELD} {job}", f"environment {logging.environment}"],
            },
        ],
        "outputs": outputs,
    }


def _input(job: str, tag: str, buffer: int) -> dict[str, Any]:
    return {
        "name": "tail",
        "alias": f"{job}-files",
        "tag": tag,
        # The pod's name, its namespace and the container's; none of them has an underscore.
        "path": f"{LOG_FOLDER}/containers/*_{job_namespace(job)}_*.log",
        "multiline.parser": "cri",
        "db": f"{STATE_FOLDER}/{job}.db",
        "db.locking": "true",
        "mem_buf_limit": f"{buffer}MB",
        "skip_long_lines": "on",
        "read_from_head": "true",
        "refresh_interval": 5,
        "rotate_wait": 30,
    }


def _to_cloudwatch(logging: Logging, job: str, match: str) -> dict[str, Any]:
    return {
        "name": "cloudwatch_logs",
        "alias": f"{job}-cloudwatch",
        "match": match,
        "region": logging.region,
        "log_group_name": f"{logging.log_group}/{job}",
        "log_stream_template": "$kubernetes['pod_name'].$kubernetes['container_name']",
        # Where the pod's name can't be read from the file's.
        "log_stream_prefix": "file-",
        # It is the observability stack's, with its key and its retention; one that is missing is a fault to be seen.
        "auto_create_group": "false",
        "retry_limit": RETRIES,
    }


def _to_open_search(logging: Logging, search: Search, job: str, match: str) -> dict[str, Any]:
    signed = {"aws_auth": "on", "aws_region": logging.region} if search.signed else {}
    return {
        "name": "opensearch",
        "alias": f"{job}-opensearch",
        "match": match,
        "host": search.host,
        "port": search.port,
        "tls": "on",
        "tls.verify": "on",
        **signed,
        # An index a day: old logs go by whole indexes.
        "logstash_format": "on",
        "logstash_prefix": f"penstock-{job}",
        "logstash_dateformat": "%Y.%m.%d",
        # A record that is sent again after a lost answer is the same document.
        "generate_id": "on",
        "replace_dots": "on",
        "suppress_type_name": "on",
        "compress": "gzip",
        "retry_limit": RETRIES,
    }


def _namespace() -> dict[str, Any]:
    """Host paths are what the restricted and the baseline Pod Security Standards refuse: so it is a namespace of its own."""
    labels = {**_labels(), "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def _service() -> dict[str, Any]:
    """Headless: DNS tells Prometheus each of its pods, those that are not well too."""
    ports = [{"name": "http", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(DAEMON_SET),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _selector(), "ports": ports},
    }


def _network_policy(logging: Logging) -> dict[str, Any]:
    """Prometheus may ask for its metrics; it talks to DNS, to AWS over HTTPS, and to the agent that hands out its role."""
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
        "containers": [_container(request)],
        "volumes": [
            {"name": "configuration", "configMap": {"name": DAEMON_SET, "defaultMode": 0o444}},
            {"name": "logs", "hostPath": {"path": LOG_FOLDER, "type": "Directory"}},
            {"name": "state", "hostPath": {"path": STATE_FOLDER, "type": "DirectoryOrCreate"}},
        ],
    }
    if request.node_selector:
        pod["nodeSelector"] = dict(request.node_selector)
    # It reads its configuration once: another one is another pod. The domain's host is known to Terraform alone, and stands for itself.
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


def _container(request: DaemonSetRequest) -> dict[str, Any]:
    memory = f"{request.memory}Mi"
    requests = {"memory": memory, **({"cpu": f"{request.cpu}m"} if request.cpu else {})}
    return {
        "name": DAEMON_SET,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/fluent-bit/bin/fluent-bit", f"--config=/etc/penstock/{CONFIGURATION}"],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": requests, "limits": {"memory": memory}},
        # The log files are root's alone to read. Root without any capability has no other right than that of their owner.
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Whether it answers, and whether its outputs get through: the latter is not mended by a restart.
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
