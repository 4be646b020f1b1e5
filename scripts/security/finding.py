"""Finding of the scanner."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Finding(BaseModel):
    """A failed rule.

    Args:
        rule: the scanner's id, such as ``CKV_AWS_19``.
        path: the failing object: ``stack/address`` of a resource, ``stack/kind/namespace/name`` of a manifest, or a file.
        says: description of the rule.
        digest: digest of the failing object as it is; empty until the gate has computed it.
    """

    model_config = ConfigDict(frozen=True)

    rule: str
    path: str
    says: str
    digest: str = ""
