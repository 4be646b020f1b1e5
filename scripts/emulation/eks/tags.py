"""Tags of EKS resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation, Refused
from penstock.scripts.emulation.eks.state import Eks


def tag_resource(eks: Eks, asked: Asked) -> Answer:
    """TagResource."""
    _tagged(eks, asked)["tags"].update(asked["tags"])
    return {}


def untag_resource(eks: Eks, asked: Asked) -> Answer:
    """UntagResource."""
    tagged = _tagged(eks, asked)
    tagged["tags"] = {key: value for key, value in tagged["tags"].items() if key not in asked["tagKeys"]}
    return {}


def list_tags_for_resource(eks: Eks, asked: Asked) -> Answer:
    """ListTagsForResource."""
    return {"tags": _tagged(eks, asked)["tags"]}


def _tagged(eks: Eks, asked: Asked) -> dict[str, Any]:
    arn = asked["resourceArn"]
    for cluster in eks.clusters.values():
        for own, description in cluster.tagged():
            if own == arn:
                return description
    raise Refused("NotFoundException", f"Resource was not found: {arn}")


OPERATIONS: Mapping[str, Operation] = {
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "ListTagsForResource": list_tags_for_resource,
}
