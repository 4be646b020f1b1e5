"""An existing EKS cluster, held against the environment and what jobs need; read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.manifests import fluent_bit, prometheus
from penstock.infra.manifests.deployed_job import namespace
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.scripts.provisioning.aws_access import AwsAccess, if_there, translated
from penstock.scripts.provisioning.errors import (
    AlreadyAdmitted,
    ClusterDiffers,
    ClusterNotFound,
    ClusterUnfit,
    KarpenterUnfit,
    NamespaceTaken,
)
from penstock.scripts.provisioning.import_blocks import TAG
from penstock.sizing.errors import DocumentError, PenstockError, raise_all

# Source: Amazon EKS API reference, Cluster, status: it serves its API while it is updated.
_SERVING = ("ACTIVE", "UPDATING")
AGENT = "eks-pod-identity-agent"
# The service account of Karpenter's chart, in the namespace that its documentation recommends and the stacks use.
_KARPENTER = {"namespace": "kube-system", "serviceAccount": "karpenter"}


def check(aws: AwsAccess, jobs: Sequence[str] = ()) -> str | None:
    """Check that the cluster is there, is what the environment says, and has what pods of jobs need to get their roles.

    Args:
        aws: AWS of the environment.
        jobs: names of its jobs.

    Returns:
        What is said of it; None if the environment creates its own.

    Raises:
        PenstockError: DEP-052, DEP-054, DEP-055, INF-058, INF-059 or INF-064; several are raised as `Faults`. TOOL-030, DEP-001, RUN-020 or
            RUN-021.
    """
    environment, existing = aws.environment, aws.environment.existing_cluster
    if existing is None:
        return None
    with translated(f"EKS in {environment.spec.region}"):
        eks = aws.client("eks")
        described = if_there(lambda: eks.describe_cluster(name=existing.name)["cluster"])
        if described is None:
            need = f"a cluster of account {environment.spec.account} in {environment.spec.region}"
            fix = f"correct the name; list them with: aws eks list-clusters --region {environment.spec.region}"
            raise _at(environment, ClusterNotFound(given=existing.name, need=need, fix=fix), "name")
        looks = (_what_it_says, _what_pods_need, _groups, _karpenter, _entries)
        raise_all([*(fault for look in looks for fault in look(aws, existing, described)), *_other_environments(aws, jobs)])
    return f"{existing.name}, version {described['version']}, karpenter: {existing.karpenter}"


def _what_it_says(aws: AwsAccess, existing: ExistingCluster, described: Mapping[str, Any]) -> Iterator[PenstockError]:
    spec = aws.environment.spec
    assert spec.eks is not None and spec.network is not None and spec.network.existing is not None
    if described["version"] != spec.eks.version:
        need = f"the version of {existing.name}, {described['version']}"
        fix = f'version: "{described["version"]}"'
        yield aws.environment.locate(ClusterDiffers(given=spec.eks.version, need=need, fix=fix), "spec", "eks", "version")
    vpc = described["resourcesVpcConfig"]["vpcId"]
    if vpc != spec.network.existing.vpc_id:
        need = f"{vpc}, in which {existing.name} is: its nodes can't be in another VPC"
        fault = ClusterDiffers(given=spec.network.existing.vpc_id, need=need, fix=f"vpcId: {vpc}, with subnets of it; or another cluster")
        yield aws.environment.locate(fault, "spec", "network", "existing", "vpcId")


def _what_pods_need(aws: AwsAccess, existing: ExistingCluster, described: Mapping[str, Any]) -> Iterator[PenstockError]:
    eks, name, region = aws.client("eks"), existing.name, aws.environment.spec.region
    if described["status"] not in _SERVING:
        yield _unfit(aws, f"its status is {described['status']}", " or ".join(_SERVING), "retry once it is active")
    mode = described.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP")
    if mode == "CONFIG_MAP":
        need = "authentication mode API or API_AND_CONFIG_MAP: nodes and administrators are admitted by access entries"
        command = f"aws eks update-cluster-config --region {region} --name {name} --access-config authenticationMode=API_AND_CONFIG_MAP"
        yield _unfit(aws, f"its authentication mode is {mode}", need, f"have its owners run: {command}")
    # EKS Auto Mode has the agent built in.
    automatic = described.get("computeConfig", {}).get("enabled", False)
    if not automatic and if_there(lambda: eks.describe_addon(clusterName=name, addonName=AGENT)) is None:
        command = f"aws eks create-addon --region {region} --cluster-name {name} --addon-name {AGENT}"
        yield _unfit(aws, f"it has no add-on {AGENT}", "the add-on, through which pods get their roles", f"have its owners run: {command}")


def _groups(aws: AwsAccess, existing: ExistingCluster, described: Mapping[str, Any]) -> Iterator[PenstockError]:
    ec2, vpc = aws.client("ec2"), described["resourcesVpcConfig"]["vpcId"]
    for index, id in enumerate(existing.security_group_ids):
        groups = if_there(_bound(ec2.describe_security_groups, GroupIds=[id]))
        place = groups["SecurityGroups"][0]["VpcId"] if groups else "no VPC of this account"
        if place != vpc:
            need, fix = f"a security group of {vpc}, the cluster's VPC; it is in {place}", "correct the id"
            yield _at(aws.environment, ClusterDiffers(given=id, need=need, fix=fix), "securityGroupIds", index)


def _karpenter(aws: AwsAccess, existing: ExistingCluster, described: Mapping[str, Any]) -> Iterator[PenstockError]:
    if existing.karpenter == "create":
        yield from _other_controller(aws)
    elif existing.node_role is not None:
        role = if_there(_bound(aws.client("iam").get_role, RoleName=existing.node_role))
        if role is None:
            need = f"an IAM role of account {aws.environment.spec.account}, that of the nodes of its Karpenter"
            yield _at(aws.environment, KarpenterUnfit(given=f"{existing.node_role} does not exist", need=need, fix=_ROLE_FIX), "nodeRole")
        elif described.get("accessConfig", {}).get("authenticationMode") == "API" and not _admitted(aws, existing, role["Role"]["Arn"]):
            given, need = f"{existing.node_role} has no access entry", "the role of nodes that may join the cluster"
            yield _at(aws.environment, KarpenterUnfit(given=given, need=need, fix=_ROLE_FIX), "nodeRole")


def has_own_controller(aws: AwsAccess) -> bool:
    """Whether the stacks have given the pods of a Karpenter in the cluster their role.

    Args:
        aws: AWS of the environment, with an existing cluster.
    """
    with translated(f"EKS in {aws.environment.spec.region}"):
        return _own_role(aws) in [arn.rpartition("/")[2] for arn in _controller_roles(aws)]


def _other_controller(aws: AwsAccess) -> Iterator[PenstockError]:
    for arn in _controller_roles(aws):
        if arn.rpartition("/")[2] != _own_role(aws):
            yield karpenter_there(aws.environment, f"kube-system/karpenter has the role {arn}")


def _own_role(aws: AwsAccess) -> str:
    return f"{aws.environment.prefix}-karpenter-controller"


def _controller_roles(aws: AwsAccess) -> list[str]:
    """The roles of the pods of Karpenter; at most one, by EKS Pod Identity."""
    eks, cluster = aws.client("eks"), aws.environment.cluster_name
    listed = eks.list_pod_identity_associations(clusterName=cluster, **_KARPENTER)["associations"]
    described = [eks.describe_pod_identity_association(clusterName=cluster, associationId=one["associationId"]) for one in listed]
    return [one["association"]["roleArn"] for one in described]


def karpenter_there(environment: Environment, given: str) -> PenstockError:
    """A cluster in which the stacks are to install Karpenter has one: two would launch nodes for the same pods.

    Args:
        environment: of the cluster.
        given: by what it is known.
    """
    need = "a cluster without Karpenter, for karpenter: create"
    fix = "karpenter: existing, with nodeRole: the IAM role of its nodes"
    return _at(environment, KarpenterUnfit(given=given, need=need, fix=fix), "karpenter")


def karpenter_missing(environment: Environment, given: str) -> PenstockError:
    """A cluster whose Karpenter is to be used has none.

    Args:
        environment: of the cluster.
        given: what is missing.
    """
    need = "a Karpenter of version 1 in the cluster, for karpenter: existing"
    return _at(environment, KarpenterUnfit(given=given, need=need, fix="karpenter: create, which installs it, or install it"), "karpenter")


def _entries(aws: AwsAccess, existing: ExistingCluster, described: Mapping[str, Any]) -> Iterator[PenstockError]:
    """Administrators that have access already, by entries that are not the environment's."""
    eks = aws.client("eks")
    for index, arn in enumerate(aws.environment.spec.eks.admins if aws.environment.spec.eks else ()):
        entry = if_there(_bound(eks.describe_access_entry, clusterName=existing.name, principalArn=arn))
        if entry is not None and entry["accessEntry"].get("tags", {}).get(TAG) != aws.environment.name:
            need = f"a principal without an access entry in {existing.name}: the entry of this one belongs to the cluster's owners"
            fault = AlreadyAdmitted(given=arn, need=need, fix="remove it from admins")
            yield aws.environment.locate(fault, "spec", "eks", "admins", index)


def _other_environments(aws: AwsAccess, jobs: Sequence[str]) -> Iterator[PenstockError]:
    """Other environments whose pods have their roles in a namespace of the same name: EKS knows of them before any chart is there."""
    eks, cluster = aws.client("eks"), aws.environment.cluster_name
    wanted = {*(namespace(job) for job in jobs), fluent_bit.NAMESPACE, prometheus.NAMESPACE}
    found: dict[str, str] = {}
    for page in eks.get_paginator("list_pod_identity_associations").paginate(clusterName=cluster):
        for one in page["associations"]:
            if one["namespace"] in wanted - set(found):
                asked = _bound(eks.describe_pod_identity_association, clusterName=cluster, associationId=one["associationId"])
                described = if_there(asked)
                owner = described["association"].get("tags", {}).get(TAG) if described else None
                if owner not in (None, aws.environment.name):
                    found[one["namespace"]] = str(owner)
    for taken, owner in sorted(found.items()):
        yield _at(aws.environment, namespace_of_another(taken, owner), "name")


def namespace_of_another(name: str, environment: str) -> NamespaceTaken:
    """A namespace belongs to another environment of Penstock.

    Args:
        name: of the namespace.
        environment: that has it.
    """
    need = "a cluster of its own: one has one environment of Penstock, for the names of namespaces and of jobs' releases are the same"
    fix = f"name another cluster, or destroy environment {environment} first"
    return NamespaceTaken(given=f"{name}, of environment {environment}", need=need, fix=fix)


def _admitted(aws: AwsAccess, existing: ExistingCluster, arn: str) -> bool:
    entry = _bound(aws.client("eks").describe_access_entry, clusterName=existing.name, principalArn=arn)
    return if_there(entry) is not None


_ROLE_FIX = "nodeRole: the name of the role in the EC2NodeClass of its Karpenter, spec.role"


def _unfit(aws: AwsAccess, given: str, need: str, fix: str) -> PenstockError:
    return _at(aws.environment, ClusterUnfit(given=given, need=need, fix=fix), "name")


def _at(environment: Environment, fault: DocumentError, *field: str | int) -> DocumentError:
    return environment.locate(fault, "spec", "eks", "existing", *field)


def _bound(ask: Callable[..., Any], **asked: Any) -> Callable[[], Any]:
    return lambda: ask(**asked)
