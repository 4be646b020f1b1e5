"""Common parts of all manifests: strict camelCase fields, labels, and metadata.

Fields that Karpenter's scheduler ignores (an image, a command, a disruption budget) are parsed and ignored; every other field is
rejected, so that nothing that would change the result is dropped silently.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

# Source: Kubernetes' syntax of label values and of the name part of keys.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)


class Manifest(BaseModel):
    """A part of a manifest: camelCase in the document, strict, unknown fields forbidden."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


def label_key(text: str) -> str:
    """Validates a label's name by Kubernetes' rules."""
    domain, slash, name = text.rpartition("/")
    good = len(name) <= 63 and _NAME.fullmatch(name) and (not slash or (len(domain) <= 253 and _DOMAIN.fullmatch(domain)))
    if not good:
        raise PydanticCustomError(
            "requirement", "{need}", {"need": "a label key: letters, digits, '-', '_', '.', optionally with a DNS prefix and '/'"}
        )
    return text


def _label_value(text: str) -> str:
    if text and (len(text) > 63 or not _NAME.fullmatch(text)):
        raise PydanticCustomError("requirement", "{need}", {"need": "a label value: at most 63 letters, digits, '-', '_', '.'"})
    return text


LabelKey = Annotated[str, AfterValidator(label_key)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
Labels = dict[LabelKey, LabelValue]
Name = Annotated[str, Field(min_length=1, max_length=253)]


class Metadata(Manifest):
    """Name and labels of an object; a pod's labels do not affect its placement."""

    name: Name | None = None
    namespace: str | None = None
    labels: Labels = {}
    annotations: dict[str, str] = {}
    # Kubernetes' own tools write null for an object that has not been created yet.
    creation_timestamp: None = None


class NamedMetadata(Metadata):
    """Metadata with a name."""

    name: Name


class LiveMetadata(NamedMetadata):
    """Metadata as returned by a cluster. Not allowed for a pod: its creation timestamp determines its order."""

    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None  # type: ignore[assignment]
    finalizers: list[str] = []
    owner_references: list[dict[str, Any]] = []
    managed_fields: list[dict[str, Any]] = []
