"""What Terraform's state of a stack holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StateResource:
    """A resource of a stack's state.

    Args:
        address: as ``aws_s3_bucket.output``.
        type: as ``aws_s3_bucket``.
        values: its attributes.
        depends_on: addresses of what it was made of.
    """

    address: str
    type: str
    values: Mapping[str, Any]
    depends_on: tuple[str, ...] = ()

    @property
    def bucket(self) -> str | None:
        """The bucket that it is, or is a setting of."""
        return self.values.get("bucket") if self.type.startswith("aws_s3_bucket") else None

    @property
    def whole(self) -> str | None:
        """The bucket or the repository that it is, or is a setting of."""
        if self.type.startswith("aws_ecr_"):
            return self.values.get("name" if self.type == "aws_ecr_repository" else "repository")
        return self.bucket


def state_resources(state: Mapping[str, Any]) -> list[StateResource]:
    """The resources of a raw state; data sources are left out, and there is none in an empty state.

    Args:
        state: what ``terraform state pull`` says: version 4, which Terraform writes since 0.12.
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
