"""Faults that the gate must find, in the shipped production environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from penstock.scripts.security.gate import DOCKERFILE
from tests.security.planting import Content, Fault

Change = Callable[[Any], None]
EVERYBODY = {"AWS": "*"}


def _arguments(address: str, **changed: Any) -> Change:
    """Changes arguments of a resource; None removes one."""
    kind, name = address.split(".", 1)

    def change(content: Content) -> None:
        arguments = content["resource"][kind][name]
        arguments.update(changed)
        for key in [key for key, value in changed.items() if value is None]:
            del arguments[key]

    return change


def _policy(address: str, edit: Callable[[list[dict[str, Any]]], None], argument: str = "policy") -> Change:
    """Changes the statements of a policy, whose references stay."""
    kind, name = address.split(".", 1)

    def change(content: Content) -> None:
        arguments = content["resource"][kind][name]
        # The quotes of Terraform's functions are not escaped in the text: such statements are left out.
        statements = [] if "${replace(" in arguments[argument] else json.loads(arguments[argument])["Statement"]
        edit(statements)
        arguments[argument] = json.dumps({"Version": "2012-10-17", "Statement": statements})

    return change


def _adding(**statement: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda statements: statements.append({"Sid": "Planted", "Effect": "Allow", **statement})


def _without_sid(sid: str) -> Callable[[list[dict[str, Any]]], None]:
    def edit(statements: list[dict[str, Any]]) -> None:
        kept = [one for one in statements if one.get("Sid") != sid]
        assert len(kept) < len(statements)
        # A policy has at least one statement.
        statements[:] = kept or [
            {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteBucket", "Resource": "${aws_s3_bucket.output.arn}"}
        ]

    return edit


def _of_bucket_alone(statements: list[dict[str, Any]]) -> None:
    statements[0]["Resource"] = ["${aws_s3_bucket.output.arn}"]


def _container(**security: Any) -> Change:
    def change(manifest: Mapping[str, Any]) -> None:
        manifest["spec"]["template"]["spec"]["containers"][0]["securityContext"].update(security)

    return change


def _image(manifest: Mapping[str, Any]) -> None:
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "penstock:latest"


def _pod(**spec: Any) -> Change:
    return lambda manifest: manifest["spec"]["template"]["spec"].update(spec)


def _privileged_and_skipped(manifest: Mapping[str, Any]) -> None:
    _container(privileged=True)(manifest)
    skips = {f"checkov.io/skip{number}": f"{rule}=not now" for number, rule in enumerate(("CKV_K8S_16", "CKV_K8S_20"))}
    manifest["metadata"].setdefault("annotations", {}).update(skips)
    manifest["spec"]["template"]["metadata"]["annotations"].update(skips)


def _template(**spec: Any) -> Change:
    """Changes the pod template of executors."""

    def change(config_map: Mapping[str, Any]) -> None:
        template = json.loads(config_map["data"]["executor.yaml"])
        template["spec"]["containers"][0]["securityContext"] = {"privileged": True, "runAsUser": 0}
        template["spec"]["securityContext"] = {"runAsUser": 0}
        template["spec"].update(spec)
        config_map["data"]["executor.yaml"] = json.dumps(template)

    return change


def _broken_template(config_map: Mapping[str, Any]) -> None:
    config_map["data"]["executor.yaml"] = "{containers: [unfinished"


def _host_path_by_setting(config_map: Mapping[str, Any]) -> None:
    runtime = json.loads(config_map["data"]["runtime.json"])
    runtime["sparkConf"]["spark.kubernetes.executor.volumes.hostPath.host.options.path"] = "/"
    config_map["data"]["runtime.json"] = json.dumps(runtime)


def _template_elsewhere(config_map: Mapping[str, Any]) -> None:
    del config_map["data"]["executor.yaml"]


def _custom_resource(manifest: dict[str, Any]) -> None:
    template = {"spec": {"containers": [{"name": "driver"}], "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}}
    manifest.update(kind="SparkApplication", spec={"driverSpec": {"podTemplateSpec": template}})


def _release(**changed: Any) -> Change:
    return _arguments("helm_release.node-pools", **changed)


def _unknown_release(content: Content) -> None:
    planted = {
        "name": "extra",
        "repository": "https://charts.example.com",
        "chart": "extra",
        "version": "1.2.3",
        "namespace": "kube-system",
    }
    content["resource"]["helm_release"]["extra"] = planted


def _other_resource(content: Content) -> None:
    content["resource"]["kubernetes_manifest"] = {"pod": {"manifest": {"kind": "Pod"}}}


def _node_class(edit: Callable[[dict[str, Any]], None]) -> Change:
    return lambda manifest: edit(manifest["spec"])


def _credentials(content: Content) -> None:
    content["provider"]["aws"][0]["secret_key"] = "planted"


def _module(content: Content) -> None:
    content["module"] = {"planted": {"source": "./planted"}}


def _kms(content: Content) -> None:
    _policy("aws_kms_key.key", _adding(Principal=EVERYBODY, Action="kms:*", Resource="*"))(content)


_BUCKET = "aws_s3_bucket.output"
_BUCKET_POLICY = "aws_s3_bucket_policy.output"
_CONTROLLER = "aws_iam_role_policy.controller"
_QUEUE = "aws_sqs_queue.interruptions"
_CLUSTER = "aws_eks_cluster.cluster"
_KAFKA = "aws_msk_cluster.kafka"
# The revision of the configuration is a number, for which there is no placeholder.
_BROKERS = (_KAFKA, "aws_msk_configuration.configuration")
_RIGHTS = "aws_iam_role_policy.job-flights"
_DRIVER = "StatefulSet.job-flights.flights-driver"
_EXECUTOR = "Pod.job-flights.flights-driver-executor"
_JOB = ("helm_release.job-flights",)
_POOLS = ("helm_release.node-pools",)
_VPC_CONFIG = {"subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]}


def _kafka(section: str, value: Any) -> Change:
    return _arguments(_KAFKA, **{section: value})


NINE = (
    Fault("key-for-everybody", "registry", _kms, ("CKV_AWS_33", "PEN_POLICY_2"), "aws_kms_key.key"),
    Fault(
        "role-for-everybody",
        "karpenter",
        _policy("aws_iam_role.node", _adding(Principal=EVERYBODY, Action="sts:AssumeRole"), "assume_role_policy"),
        ("CKV_AWS_60", "PEN_POLICY_2"),
        "aws_iam_role.node",
    ),
    Fault(
        "all-of-s3-for-a-job",
        "jobs",
        _policy(_RIGHTS, _adding(Action=["s3:*", "iam:PassRole"], Resource="*")),
        ("CKV_AWS_288", "CKV_AWS_289", "CKV_AWS_290", "CKV_AWS_355", "PEN_POLICY_3", "PEN_POLICY_5"),
        _RIGHTS,
    ),
    Fault(
        "bucket-for-everybody",
        "checkpoints",
        _policy(_BUCKET_POLICY, _adding(Principal="*", Action="s3:*", Resource=["${aws_s3_bucket.output.arn}/*"])),
        ("CKV_AWS_70", "PEN_POLICY_2"),
        _BUCKET_POLICY,
        (_BUCKET, _BUCKET_POLICY),
    ),
    Fault(
        "all-of-iam-for-karpenter",
        "karpenter",
        _policy(_CONTROLLER, _adding(Action="iam:*", Resource="*")),
        ("CKV_AWS_286", "CKV_AWS_289", "CKV_AWS_355", "PEN_POLICY_3", "PEN_POLICY_5"),
        _CONTROLLER,
        (_CONTROLLER, "aws_iam_role.controller", "aws_iam_role.node", _QUEUE),
    ),
    Fault("privileged-driver", "jobs-charts", _privileged_and_skipped, ("CKV_K8S_16", "PEN_SKIP_1"), _DRIVER, _JOB, ("StatefulSet",)),
    Fault(
        "privileged-executor",
        "jobs-charts",
        _template(hostNetwork=True, volumes=[{"name": "host", "hostPath": {"path": "/"}}]),
        ("CKV_K8S_16", "CKV_K8S_19", "CKV_K8S_23", "PEN_POD_1"),
        _EXECUTOR,
        _JOB,
        ("ConfigMap",),
    ),
    Fault("unknown-chart", "karpenter-charts", _unknown_release, ("PEN_HELM_1",), "helm_release.extra@1.2.3", ("helm_release.extra",)),
)
# The ninth: USER root below a suppression.
DOCKERFILES = {
    "root-in-the-image": (DOCKERFILE.read_text(encoding="utf-8") + "# checkov:skip=CKV_DOCKER_8:not now\nUSER root\n", "CKV_DOCKER_8"),
    "root-without-a-word": (DOCKERFILE.read_text(encoding="utf-8") + "USER root\n", "CKV_DOCKER_8"),
}
MORE = (
    Fault("bucket-without-a-block", "checkpoints", lambda content: None, ("CKV2_AWS_6",), _BUCKET),
    Fault(
        "unversioned-bucket",
        "checkpoints",
        _arguments("aws_s3_bucket_versioning.output", versioning_configuration={"status": "Suspended"}),
        ("CKV_AWS_21",),
        _BUCKET,
        (_BUCKET, "aws_s3_bucket_versioning.output"),
    ),
    Fault(
        "bucket-with-plaintext",
        "checkpoints",
        _policy(_BUCKET_POLICY, _without_sid("TlsOnly")),
        ("PEN_POLICY_6",),
        _BUCKET,
        (_BUCKET, _BUCKET_POLICY),
    ),
    Fault(
        "objects-with-plaintext",
        "checkpoints",
        _policy(_BUCKET_POLICY, _of_bucket_alone),
        ("PEN_POLICY_6",),
        _BUCKET,
        (_BUCKET, _BUCKET_POLICY),
    ),
    Fault("secrets-in-plaintext", "cluster", _arguments(_CLUSTER, encryption_config=None), ("CKV_AWS_58",), _CLUSTER),
    Fault(
        "public-api",
        "cluster",
        _arguments(_CLUSTER, vpc_config={**_VPC_CONFIG, "endpoint_public_access": True, "public_access_cidrs": ["0.0.0.0/0"]}),
        ("CKV_AWS_38", "CKV_AWS_39"),
        _CLUSTER,
    ),
    Fault("no-audit-log", "cluster", _arguments(_CLUSTER, enabled_cluster_log_types=["api"]), ("CKV_AWS_37",), _CLUSTER),
    Fault(
        "anonymous-clients",
        "kafka",
        _kafka("client_authentication", {"sasl": {"iam": True}, "unauthenticated": True}),
        ("PEN_MSK_1",),
        _KAFKA,
    ),
    Fault(
        "plaintext-clients",
        "kafka",
        _kafka("encryption_info", {"encryption_in_transit": {"client_broker": "TLS_PLAINTEXT", "in_cluster": True}}),
        ("CKV_AWS_81", "PEN_MSK_1"),
        _KAFKA,
        _BROKERS,
    ),
    Fault("no-broker-logs", "kafka", _arguments(_KAFKA, logging_info=None), ("CKV_AWS_80",), _KAFKA, _BROKERS),
    Fault("plaintext-queue", "karpenter", _arguments(_QUEUE, sqs_managed_sse_enabled=False), ("CKV_AWS_27",), _QUEUE),
    Fault(
        "queue-without-tls",
        "karpenter",
        _policy("aws_sqs_queue_policy.interruptions-policy", _without_sid("TlsOnly")),
        ("PEN_POLICY_6",),
        _QUEUE,
        (_QUEUE, "aws_sqs_queue_policy.interruptions-policy"),
    ),
    Fault(
        "queue-for-everybody",
        "karpenter",
        _policy(
            "aws_sqs_queue_policy.interruptions-policy",
            _adding(Principal="*", Action="sqs:*", Resource="${aws_sqs_queue.interruptions.arn}"),
        ),
        ("CKV_AWS_168", "PEN_POLICY_2"),
        "aws_sqs_queue_policy.interruptions-policy",
        ("aws_sqs_queue_policy.interruptions-policy", _QUEUE),
    ),
    Fault("old-key", "kafka", _arguments("aws_kms_key.key", enable_key_rotation=False), ("CKV_AWS_7",), "aws_kms_key.key"),
    Fault(
        "mutable-tags",
        "registry",
        _arguments("aws_ecr_repository.repository", image_tag_mutability="MUTABLE"),
        ("CKV_AWS_51",),
        "aws_ecr_repository.repository",
    ),
    Fault(
        "images-not-scanned",
        "registry",
        _arguments("aws_ecr_repository.repository", image_scanning_configuration={"scan_on_push": False}),
        ("CKV_AWS_163",),
        "aws_ecr_repository.repository",
    ),
    Fault(
        "metadata-without-a-token",
        "cluster",
        _arguments("aws_launch_template.system-template", metadata_options={"http_endpoint": "enabled", "http_tokens": "optional"}),
        ("CKV_AWS_79",),
        "aws_launch_template.system-template",
    ),
    Fault(
        "ssh-from-everywhere",
        "cluster",
        _arguments("aws_vpc_security_group_ingress_rule.api-from-vpc", cidr_ipv4="0.0.0.0/0", from_port=22, to_port=22),
        ("CKV_AWS_24",),
        "aws_vpc_security_group_ingress_rule.api-from-vpc",
    ),
    Fault(
        "public-subnet",
        "network",
        _arguments("aws_subnet.private-us-east-1a", map_public_ip_on_launch=True),
        ("CKV_AWS_130",),
        "aws_subnet.private-us-east-1a",
    ),
    Fault(
        "plaintext-logs",
        "cluster",
        _arguments("aws_cloudwatch_log_group.logs", kms_key_id=None),
        ("CKV_AWS_158",),
        "aws_cloudwatch_log_group.logs",
    ),
    Fault(
        "plaintext-topic",
        "observability",
        _arguments("aws_sns_topic.alarms", kms_master_key_id=None),
        ("CKV_AWS_26",),
        "aws_sns_topic.alarms",
    ),
    Fault(
        "administrator",
        "karpenter",
        _arguments(
            "aws_iam_role_policy_attachment.node-AmazonEKSWorkerNodePolicy",
            policy_arn="arn:${data.aws_partition.partition.partition}:iam::aws:policy/AdministratorAccess",
        ),
        ("CKV_AWS_274",),
        "aws_iam_role_policy_attachment.node-AmazonEKSWorkerNodePolicy",
    ),
    Fault(
        "any-role-passed",
        "karpenter",
        _policy(_CONTROLLER, _adding(Action=["iam:Pass*"], Resource="arn:${data.aws_partition.partition.partition}:iam::*:role/*")),
        ("PEN_POLICY_5",),
        _CONTROLLER,
    ),
    Fault("all-but-one", "karpenter", _policy(_CONTROLLER, _adding(NotAction=["iam:*"], Resource="*")), ("PEN_POLICY_4",), _CONTROLLER),
    Fault(
        "unreadable-policy",
        "karpenter",
        _arguments(_CONTROLLER, policy="${data.aws_iam_policy_document.planted.json}"),
        ("PEN_POLICY_1",),
        _CONTROLLER,
    ),
    Fault(
        "unreadable-action",
        "karpenter",
        _policy(_CONTROLLER, _adding(Action='${join(":", ["iam", "*"])}', Resource="*")),
        ("PEN_POLICY_1",),
        _CONTROLLER,
    ),
    Fault("stack-with-a-module", "registry", _module, ("PEN_STACK_1",), "module.planted", ("aws_kms_key.key",)),
    Fault("provider-with-credentials", "registry", _credentials, ("PEN_PROVIDER_1",), "provider.aws", ("aws_kms_key.key",)),
    Fault(
        "skip-in-a-description",
        "registry",
        _arguments("aws_kms_key.key", description="checkov:skip=CKV_AWS_33:not now"),
        ("PEN_SKIP_1",),
        "aws_kms_key.key",
    ),
    Fault("host-processes", "jobs-charts", _pod(hostPID=True), ("CKV_K8S_17",), _DRIVER, _JOB, ("StatefulSet",)),
    Fault("escalating-driver", "jobs-charts", _container(allowPrivilegeEscalation=True), ("CKV_K8S_20",), _DRIVER, _JOB, ("StatefulSet",)),
    Fault("writable-root", "jobs-charts", _container(readOnlyRootFilesystem=False), ("CKV_K8S_22",), _DRIVER, _JOB, ("StatefulSet",)),
    Fault(
        "capable-driver", "jobs-charts", _container(capabilities={"add": ["SYS_ADMIN"]}), ("CKV_K8S_39",), _DRIVER, _JOB, ("StatefulSet",)
    ),
    Fault("latest-image", "jobs-charts", _image, ("CKV_K8S_14",), _DRIVER, _JOB, ("StatefulSet",)),
    Fault("broken-template", "jobs-charts", _broken_template, ("PEN_POD_2",), "ConfigMap.job-flights.flights-driver", _JOB, ("ConfigMap",)),
    Fault("host-path-by-setting", "jobs-charts", _host_path_by_setting, ("PEN_POD_1",), _EXECUTOR, _JOB, ("ConfigMap",)),
    Fault(
        "template-elsewhere",
        "jobs-charts",
        _template_elsewhere,
        ("PEN_POD_2",),
        "ConfigMap.job-flights.flights-driver",
        _JOB,
        ("ConfigMap",),
    ),
    Fault(
        "custom-resource",
        "jobs-charts",
        _custom_resource,
        ("PEN_POD_1",),
        "Pod.job-flights.flights-driver-template-0",
        _JOB,
        ("ConfigMap",),
    ),
    Fault(
        "all-objects",
        "karpenter",
        _policy(_CONTROLLER, _adding(Action=["s3:*"], Resource="arn:${data.aws_partition.partition.partition}:s3:::*")),
        ("PEN_POLICY_3",),
        _CONTROLLER,
    ),
    Fault(
        "old-metadata",
        "karpenter-charts",
        _node_class(lambda spec: spec["metadataOptions"].update(httpTokens="optional")),
        ("PEN_NODE_1",),
        "EC2NodeClass.default.default",
        _POOLS,
        ("EC2NodeClass",),
    ),
    Fault(
        "metadata-for-pods",
        "karpenter-charts",
        _node_class(lambda spec: spec["metadataOptions"].update(httpPutResponseHopLimit=2)),
        ("PEN_NODE_1",),
        "EC2NodeClass.default.default",
        _POOLS,
        ("EC2NodeClass",),
    ),
    Fault(
        "plaintext-volumes",
        "karpenter-charts",
        _node_class(lambda spec: spec["blockDeviceMappings"][0]["ebs"].update(encrypted=False)),
        ("PEN_NODE_2",),
        "EC2NodeClass.default.default",
        _POOLS,
        ("EC2NodeClass",),
    ),
    Fault(
        "set-beside-the-values",
        "karpenter-charts",
        _release(set=[{"name": "manifests[0].spec.role", "value": "other"}]),
        ("PEN_HELM_2",),
        "helm_release.node-pools",
    ),
    Fault(
        "not-a-release",
        "karpenter-charts",
        _other_resource,
        ("PEN_HELM_3",),
        "kubernetes_manifest.pod",
        ("kubernetes_manifest.pod",),
    ),
)
