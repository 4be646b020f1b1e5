"""A finding of the scanner."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Finding(BaseModel):
    """A rule that fails.

    Args:
        rule: the scanner's id, as ``CKV_AWS_19``.
        path: what it fails on: ``stack/address`` of a resource, ``stack/kind/namespace/name`` of a manifest, or a file.
        says: the rule in words.
    """

    model_config = ConfigDict(frozen=True)

    rule: str
    path: str
    says: str
