"""Tags and resource policies of clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.msk.state import Msk, bad_request, new_version, not_found


def tag_resource(msk: Msk, asked: Asked) -> Answer:
    """TagResource."""
    _tags(msk, asked).update(asked["Tags"])
    return {}


def untag_resource(msk: Msk, asked: Asked) -> Answer:
    """UntagResource."""
    tags = _tags(msk, asked)
    for key in asked["TagKeys"]:
        tags.pop(key, None)
    return {}


def list_tags_for_resource(msk: Msk, asked: Asked) -> Answer:
    """ListTagsForResource."""
    return {"Tags": _tags(msk, asked)}


def put_cluster_policy(msk: Msk, asked: Asked) -> Answer:
    """PutClusterPolicy: replaces the version that the request names."""
    cluster = msk.cluster(asked)
    held = cluster.policy[1] if cluster.policy else None
    if asked.get("CurrentVersion") not in (None, held):
        raise bad_request(f"The policy has the version {held}, not {asked['CurrentVersion']}", "currentVersion")
    try:
        statements = json.loads(asked["Policy"])["Statement"]
    except (ValueError, KeyError, TypeError):
        statements = None
    if not statements:
        raise bad_request("The policy is no policy", "policy")
    cluster.policy = (asked["Policy"], new_version())
    return {"CurrentVersion": cluster.policy[1]}


def get_cluster_policy(msk: Msk, asked: Asked) -> Answer:
    """GetClusterPolicy."""
    text, version = _policy(msk, asked)
    return {"Policy": text, "CurrentVersion": version}


def delete_cluster_policy(msk: Msk, asked: Asked) -> Answer:
    """DeleteClusterPolicy."""
    _policy(msk, asked)
    msk.cluster(asked).policy = None
    return {}


def _policy(msk: Msk, asked: Asked) -> tuple[str, str]:
    policy = msk.cluster(asked).policy
    if policy is None:
        raise not_found(f"There is no policy of {asked['ClusterArn']}")
    return policy


def _tags(msk: Msk, asked: Asked) -> dict[str, str]:
    arn = asked["ResourceArn"]
    for own, tags in msk.tagged():
        if own == arn:
            return tags
    raise not_found(f"Resource not found: {arn}")


OPERATIONS: Mapping[str, Operation] = {
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "ListTagsForResource": list_tags_for_resource,
    "PutClusterPolicy": put_cluster_policy,
    "GetClusterPolicy": get_cluster_policy,
    "DeleteClusterPolicy": delete_cluster_policy,
}
