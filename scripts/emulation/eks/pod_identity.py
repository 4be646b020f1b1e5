"""Pod identity: IAM roles of service accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.eks.state import Cluster, Eks, in_use, invalid_request, need_role, new_id, not_found, now, page

# Source: EKS's user guide, "Create IAM role with trust policy required by EKS Pod Identity".
SERVICE = "pods.eks.amazonaws.com"
ACTIONS = ("sts:AssumeRole", "sts:TagSession")
_SUMMARY = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId", "ownerArn")


def create_pod_identity_association(eks: Eks, asked: Asked) -> Answer:
    """CreatePodIdentityAssociation: one per service account."""
    return {"association": associate(eks.cluster(asked), asked)}


def describe_pod_identity_association(eks: Eks, asked: Asked) -> Answer:
    """DescribePodIdentityAssociation."""
    return {"association": _association(eks.cluster(asked), asked)}


def list_pod_identity_associations(eks: Eks, asked: Asked) -> Answer:
    """ListPodIdentityAssociations: all, or those of a namespace or service account."""
    wanted = {key: asked[key] for key in ("namespace", "serviceAccount") if key in asked}
    associations = [one for one in eks.cluster(asked).associations.values() if all(one[key] == value for key, value in wanted.items())]
    return page([{key: one[key] for key in _SUMMARY if key in one} for one in associations], asked, "associations")


def update_pod_identity_association(eks: Eks, asked: Asked) -> Answer:
    """UpdatePodIdentityAssociation: changes the role, and whether session tags are disabled."""
    cluster = eks.cluster(asked)
    association = _association(cluster, asked)
    _need_free(cluster, association)
    if "roleArn" in asked:
        need_role(cluster.place, asked["roleArn"], service=SERVICE, actions=ACTIONS)
    changed = {key: asked[key] for key in ("roleArn", "disableSessionTags", "targetRoleArn", "policy") if key in asked}
    association.update(changed, modifiedAt=now())
    return {"association": association}


def delete_pod_identity_association(eks: Eks, asked: Asked) -> Answer:
    """DeletePodIdentityAssociation."""
    cluster = eks.cluster(asked)
    gone = _association(cluster, asked)
    _need_free(cluster, gone)
    del cluster.associations[gone["associationId"]]
    return {"association": gone}


def associate(cluster: Cluster, asked: Asked, owner: str | None = None) -> dict[str, Any]:
    """Create an association.

    Args:
        cluster: the cluster.
        asked: ``namespace``, ``serviceAccount``, ``roleArn``, and the API's optional parameters.
        owner: ARN of the add-on that owns it.

    Returns:
        Its description.

    Raises:
        Refused: ResourceInUseException, InvalidParameterException.
    """
    account = (asked["namespace"], asked["serviceAccount"])
    if any((one["namespace"], one["serviceAccount"]) == account for one in cluster.associations.values()):
        raise in_use(f"Association already exists: {account[0]}/{account[1]}", clusterName=cluster.name)
    need_role(cluster.place, asked["roleArn"], service=SERVICE, actions=ACTIONS)
    id = f"a-{new_id(17)}"
    optional = {key: asked[key] for key in ("targetRoleArn", "policy") if key in asked}
    description = {
        "clusterName": cluster.name,
        "namespace": asked["namespace"],
        "serviceAccount": asked["serviceAccount"],
        "roleArn": asked["roleArn"],
        "associationArn": cluster.arn("podidentityassociation", id),
        "associationId": id,
        "tags": dict(asked.get("tags", {})),
        "createdAt": now(),
        "modifiedAt": now(),
        "disableSessionTags": asked.get("disableSessionTags", False),
        **optional,
        **({"ownerArn": owner} if owner else {}),
    }
    cluster.associations[id] = description
    return description


def _association(cluster: Cluster, asked: Asked) -> dict[str, Any]:
    id = asked["associationId"]
    if id not in cluster.associations:
        raise not_found(f"Association not found: {id}", clusterName=cluster.name)
    return cluster.associations[id]


def _need_free(cluster: Cluster, association: Mapping[str, Any]) -> None:
    if "ownerArn" in association:
        raise invalid_request(f"The association belongs to {association['ownerArn']}", clusterName=cluster.name)


OPERATIONS: Mapping[str, Operation] = {
    "CreatePodIdentityAssociation": create_pod_identity_association,
    "DescribePodIdentityAssociation": describe_pod_identity_association,
    "ListPodIdentityAssociations": list_pod_identity_associations,
    "UpdatePodIdentityAssociation": update_pod_identity_association,
    "DeletePodIdentityAssociation": delete_pod_identity_association,
}
