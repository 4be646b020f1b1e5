"""Digest of what a waiver was given for: it changes with what the object may do, and not with the sizes that a plan sets."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_DIGITS = 16
# Fields that a plan, a release or the configuration of a job sets. What remains of them is that they are set.
_SIZES = frozenset(
    {
        "failureThreshold",
        "initialDelaySeconds",
        "periodSeconds",
        "replicas",
        "sizeLimit",
        "terminationGracePeriodSeconds",
        "timeoutSeconds",
    }
)
_QUANTITIES = frozenset({"requests", "limits"})
_ANNOTATIONS_OF_PENSTOCK = "penstock.dev/"
_TAG = re.compile(r"(?<=[\w-])(:[\w.-]+)?(@sha256:[0-9a-f]+)?$")


def of_resource(arguments: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Digest of a Terraform resource.

    Args:
        arguments: its synthesized arguments.
        names: names of the environment and its jobs, which are not part of the digest, with what stands for each.
    """
    return _digest({name: value for name, value in arguments.items() if name not in ("//", "depends_on")}, names)


def of_manifest(manifest: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Digest of a Kubernetes object, without quantities, values of variables and tags of images.

    Args:
        manifest: the object.
        names: names of the environment and its jobs, which are not part of the digest, with what stands for each.
    """
    return _digest(_of_kubernetes(manifest), names)


def of_text(text: str) -> str:
    """Digest of a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _digest(value: Any, names: Mapping[str, str]) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    # Longest first: a name may be part of another.
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![a-zA-Z0-9.]){re.escape(name)}(?![a-zA-Z0-9])", names[name], text)
    return of_text(text)


def _of_kubernetes(value: Any, field: str = "") -> Any:
    if isinstance(value, Mapping):
        own = {key for key in value if field == "annotations" and key.startswith(_ANNOTATIONS_OF_PENSTOCK)}
        return {key: _of_field(key, one, field) for key, one in value.items() if key not in own}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_of_kubernetes(one, field) for one in value]
    return value


def _of_field(key: str, value: Any, parent: str) -> Any:
    if key in _SIZES:
        return "set"
    if key in _QUANTITIES and parent == "resources" and isinstance(value, Mapping):
        return sorted(value)
    if key == "env" and isinstance(value, list):
        return [{name: one for name, one in variable.items() if name != "value"} for variable in value]
    if key == "image" and isinstance(value, str):
        return _TAG.sub("", value)
    return _of_kubernetes(value, key)
