"""Mirrors of the registries that images and charts of others come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

# Karpenter's images and charts, Fluent Bit's image and Prometheus's.
Registry = Literal["public.ecr.aws", "cr.fluentbit.io", "quay.io"]
# Source: OCI distribution specification, "Pulling manifests": a host with its port, and the beginning of a repository's name.
MIRROR_PATTERN = r"^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$"

Mirrors = dict[Registry, Annotated[str, Field(pattern=MIRROR_PATTERN)]]


def mirrored(name: str, mirrors: Mapping[Registry, str]) -> str:
    """The name of an image or a chart at the mirror of its registry, or as it is if there is none.

    Args:
        name: with its registry, such as ``quay.io/prometheus/prometheus:v3.13.5``.
        mirrors: registry -> mirror, as a pull-through cache of Amazon ECR has it: host and prefix.
    """
    for registry, mirror in mirrors.items():
        if name.startswith(f"{registry}/"):
            return mirror + name.removeprefix(registry)
    return name
