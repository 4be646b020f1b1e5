"""Resources in Terraform's state of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StateResource:
    """A resource in a stack's state.

    Args:
        address: its address, such as ``aws_s3_bucket.output``.
        type: its type, such as ``aws_s3_bucket``.
        values: its attributes.
        depends_on: addresses of its dependencies.
    """

    address: str
    type: str
    values: Mapping[str, Any]
    depends_on: tuple[str, ...] = ()

    @property
    def bucket(self) -> str | None:
        """Name of the bucket, for a bucket or a setting of one."""
        return self.values.get("bucket") if self.type.startswith("aws_s3_bucket") else None

    @property
    def whole(self) -> str | None:
        """Name of the bucket or repository, for one or a setting of one."""
        if self.type.startswith("aws_ecr_"):
            return self.values.get("name" if self.type == "aws_ecr_repository" else "repository")
        return self.bucket


def state_resources(state: Mapping[str, Any]) -> list[StateResource]:
    """Parse the resources of a raw state, without data sources; an empty state has none.

    Args:
        state: output of ``terraform state pull``: version 4, which Terraform writes since 0.12.
    """
    return [
        StateResource(
            _address(resource, instance), resource["type"], instance.get("attributes") or {}, tuple(instance.get("dependencies", ()))
        )
        for resource in state.get("resources", ())
        if resource["mode"] == "managed"
        for instance in resource["instances"]
    ]


def _address(resource: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    key = instance.get("index_key")
    index = "" if key is None else f"[{key}]" if isinstance(key, int) else f'["{key}"]'
    return f"{resource['type']}.{resource['name']}{index}"
