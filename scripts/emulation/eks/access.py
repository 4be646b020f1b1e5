"""Access entries: IAM principals with access to the cluster, and EKS's access policies that they have."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation import neighbours
from penstock.scripts.emulation.checked_service import Answer, Asked, Operation, Place
from penstock.scripts.emulation.eks.state import Cluster, Eks, in_use, invalid, invalid_request, not_found, now, page

# Source: EKS's user guide, "Review access policy permissions".
POLICIES = (
    "AmazonEKSAdminPolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
    "AmazonEKSSecretReaderPolicy",
    "AmazonEKSAutoNodePolicy",
    "AmazonEKSBlockStoragePolicy",
    "AmazonEKSClusterInsightsPolicy",
    "AmazonEKSComputePolicy",
    "AmazonEKSHybridPolicy",
    "AmazonEKSLoadBalancingPolicy",
    "AmazonEKSNetworkingPolicy",
)
# Source: EKS's API reference, CreateAccessEntry, type.
STANDARD, NODES = "STANDARD", "EC2_LINUX"
TYPES = (STANDARD, NODES, "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX")
_WITH_POLICIES = (STANDARD, "EC2")
# Source: EKS's API reference, CreateAccessEntry, kubernetesGroups and username.
_RESERVED = ("system:", "eks:", "aws:", "amazon:", "iam:")
_MODES = ("API", "API_AND_CONFIG_MAP")
_PRINCIPAL = re.compile(r"arn:[^:]+:iam::(?P<account>\d{12}):(?P<kind>role|user)/.+")


def create_access_entry(eks: Eks, asked: Asked) -> Answer:
    """CreateAccessEntry."""
    cluster = _with_entries(eks, asked)
    principal, kind = asked["principalArn"], asked.get("type", STANDARD)
    if kind not in TYPES:
        raise invalid(f"The type {kind} is not one of {', '.join(TYPES)}", clusterName=cluster.name)
    if principal in cluster.access_entries:
        raise in_use("The specified access entry resource is already in use on this cluster.", clusterName=cluster.name)
    _need_principal(cluster.place, principal)
    if kind != STANDARD and (given := [key for key in ("kubernetesGroups", "username") if key in asked]):
        raise invalid(f"{given[0]} cannot be set for the type {kind}", clusterName=cluster.name)
    return {"accessEntry": _add(cluster, principal, kind, asked)}


def describe_access_entry(eks: Eks, asked: Asked) -> Answer:
    """DescribeAccessEntry."""
    return {"accessEntry": _entry(_with_entries(eks, asked), asked["principalArn"])}


def list_access_entries(eks: Eks, asked: Asked) -> Answer:
    """ListAccessEntries: all, or those with a policy."""
    cluster, policy = _with_entries(eks, asked), asked.get("associatedPolicyArn")
    having = [arn for arn in sorted(cluster.access_entries) if policy is None or policy in cluster.access_policies.get(arn, {})]
    return page(having, asked, "accessEntries")


def update_access_entry(eks: Eks, asked: Asked) -> Answer:
    """UpdateAccessEntry: groups and user name of a standard entry."""
    cluster = _with_entries(eks, asked)
    entry = _entry(cluster, asked["principalArn"])
    if entry["type"] != STANDARD:
        raise invalid_request(f"An entry of the type {entry['type']} cannot be updated", clusterName=cluster.name)
    changed = {key: asked[key] for key in ("kubernetesGroups", "username") if key in asked}
    _need_own_names(changed)
    entry.update(changed, modifiedAt=now())
    return {"accessEntry": entry}


def delete_access_entry(eks: Eks, asked: Asked) -> Answer:
    """DeleteAccessEntry: with its policies."""
    cluster = _with_entries(eks, asked)
    _entry(cluster, asked["principalArn"])
    _remove(cluster, asked["principalArn"])
    return {}


def list_access_policies(eks: Eks, asked: Asked) -> Answer:
    """ListAccessPolicies."""
    known = [{"name": name, "arn": _policy_arn(eks.place, name)} for name in sorted(POLICIES)]
    return page(known, asked, "accessPolicies")


def associate_access_policy(eks: Eks, asked: Asked) -> Answer:
    """AssociateAccessPolicy: repeated for the same policy, it changes the scope."""
    cluster = _with_entries(eks, asked)
    principal, policy = asked["principalArn"], asked["policyArn"]
    entry = _entry(cluster, principal)
    if entry["type"] not in _WITH_POLICIES:
        raise invalid_request(f"An entry of the type {entry['type']} takes no policies", clusterName=cluster.name)
    if policy not in [_policy_arn(eks.place, name) for name in POLICIES]:
        raise invalid(f"The policyArn {policy} is no access policy of EKS", clusterName=cluster.name)
    _need_scope(asked["accessScope"])
    policies = cluster.access_policies.setdefault(principal, {})
    since = policies.get(policy, {}).get("associatedAt", now())
    policies[policy] = {"policyArn": policy, "accessScope": dict(asked["accessScope"]), "associatedAt": since, "modifiedAt": now()}
    return {"clusterName": cluster.name, "principalArn": principal, "associatedAccessPolicy": policies[policy]}


def disassociate_access_policy(eks: Eks, asked: Asked) -> Answer:
    """DisassociateAccessPolicy."""
    cluster = _with_entries(eks, asked)
    principal, policy = asked["principalArn"], asked["policyArn"]
    _entry(cluster, principal)
    if policy not in cluster.access_policies.get(principal, {}):
        raise not_found(f"The policy {policy} is not associated with {principal}", clusterName=cluster.name)
    del cluster.access_policies[principal][policy]
    return {}


def list_associated_access_policies(eks: Eks, asked: Asked) -> Answer:
    """ListAssociatedAccessPolicies."""
    cluster, principal = _with_entries(eks, asked), asked["principalArn"]
    _entry(cluster, principal)
    policies = cluster.access_policies.get(principal, {})
    listed = page([policies[arn] for arn in sorted(policies)], asked, "associatedAccessPolicies")
    return {"clusterName": cluster.name, "principalArn": principal, **listed}


def admit_nodes(cluster: Cluster, role_arn: str) -> None:
    """Create the access entry of a managed node group's role, as EKS does automatically in clusters with access entries."""
    if cluster.description["accessConfig"]["authenticationMode"] in _MODES and role_arn not in cluster.access_entries:
        _add(cluster, role_arn, NODES, {})


def dismiss_nodes(cluster: Cluster, role_arn: str) -> None:
    """Delete the access entry of a managed node group's role."""
    if cluster.access_entries.get(role_arn, {}).get("type") == NODES:
        _remove(cluster, role_arn)


def _with_entries(eks: Eks, asked: Asked) -> Cluster:
    """The cluster, if its authentication mode allows access entries."""
    cluster = eks.cluster(asked)
    if cluster.description["accessConfig"]["authenticationMode"] not in _MODES:
        message = "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."
        raise invalid_request(message, clusterName=cluster.name)
    return cluster


def _entry(cluster: Cluster, principal: str) -> dict[str, Any]:
    if principal not in cluster.access_entries:
        message = f"The specified principalArn could not be found. You can view your available access entries: {principal}"
        raise not_found(message, clusterName=cluster.name)
    return cluster.access_entries[principal]


def _add(cluster: Cluster, principal: str, kind: str, asked: Asked) -> dict[str, Any]:
    _need_own_names(asked)
    *_, account, resource = principal.split(":")
    role, _, name = resource.partition("/")
    nodes = {"kubernetesGroups": ["system:nodes"], "username": "system:node:{{EC2PrivateDNSName}}"}
    person = {"kubernetesGroups": list(asked.get("kubernetesGroups", [])), "username": asked.get("username") or _user_name(principal)}
    cluster.access_entries[principal] = {
        "clusterName": cluster.name,
        "principalArn": principal,
        "accessEntryArn": cluster.arn("access-entry", role, account, name.rpartition("/")[2], str(uuid.uuid4())),
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": dict(asked.get("tags", {})),
        "type": kind,
        **(person if kind == STANDARD else nodes),
    }
    return cluster.access_entries[principal]


def _remove(cluster: Cluster, principal: str) -> None:
    del cluster.access_entries[principal]
    cluster.access_policies.pop(principal, None)


def _user_name(principal: str) -> str:
    """Source: EKS's user guide, "Create access entries": the principal's default user name in Kubernetes."""
    return re.sub(r":iam::(\d+):role/(?:.*/)?([^/]+)$", r":sts::\1:assumed-role/\2/{{SessionName}}", principal)


def _need_principal(place: Place, principal: str) -> None:
    known = _PRINCIPAL.fullmatch(principal)
    if known and known["account"] == place.account:
        role = known["kind"] == "role"
        exists = neighbours.trust_policy(place, principal) is not None if role else neighbours.user_exists(place, principal)
        known = known if exists else None
    if known is None:
        raise invalid(f"The specified principalArn is invalid: invalid principal: {principal}")


def _need_own_names(asked: Asked) -> None:
    for name in (*asked.get("kubernetesGroups", ()), asked.get("username", "")):
        if name.startswith(_RESERVED):
            raise invalid(f"{name} begins with one of {', '.join(_RESERVED)}, which are reserved")


def _need_scope(scope: Mapping[str, Any]) -> None:
    if (scope.get("type") == "namespace") != bool(scope.get("namespaces")):
        raise invalid("A scope of the type namespace has namespaces, one of the type cluster has none")


def _policy_arn(place: Place, name: str) -> str:
    return f"arn:{place.partition}:eks::aws:cluster-access-policy/{name}"


OPERATIONS: Mapping[str, Operation] = {
    "CreateAccessEntry": create_access_entry,
    "DescribeAccessEntry": describe_access_entry,
    "ListAccessEntries": list_access_entries,
    "UpdateAccessEntry": update_access_entry,
    "DeleteAccessEntry": delete_access_entry,
    "ListAccessPolicies": list_access_policies,
    "AssociateAccessPolicy": associate_access_policy,
    "DisassociateAccessPolicy": disassociate_access_policy,
    "ListAssociatedAccessPolicies": list_associated_access_policies,
}
