"""The schemas of Karpenter's objects, from its own CRDs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

CRDS = Path(__file__).resolve().parents[4] / "shared" / "crds"
_FILES = {"NodePool": "karpenter.sh_nodepools.yaml", "EC2NodeClass": "karpenter.k8s.aws_ec2nodeclasses.yaml"}


def hold(manifest: dict[str, Any]) -> None:
    """Validates a manifest against the CRD of its kind."""
    jsonschema.validate({**manifest, "metadata": {}}, schema(manifest["kind"]))


def schema(kind: str) -> dict[str, Any]:
    """The schema of a kind; the test is skipped if the CRDs are not available."""
    file = CRDS / _FILES[kind]
    if not file.is_file():
        reason = f"the CRDs of Karpenter are not in {CRDS.name}/ beside the checkout"
        if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    crd = yaml.safe_load(file.read_text(encoding="utf-8"))
    closed: dict[str, Any] = _closed(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return closed


def _closed(part: Any) -> Any:
    """A copy that rejects fields that are not in the CRD: the API server drops such a field silently."""
    if isinstance(part, list):
        return [_closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _closed(value) for key, value in part.items()}
    if isinstance(part.get("properties"), dict) and part["properties"] and part.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
