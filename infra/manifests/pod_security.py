"""Security contexts of a job's pods, as the restricted Pod Security Standard requires."""

from __future__ import annotations

from typing import Any

# Source: the user `spark` of the official Spark image.
SPARK_UID = 185
# The root file system is read-only; these folders are writable.
TEMPORARY = "/tmp"
WORK = "/opt/spark/work-dir"
LOCAL_DIRS = "/var/data/spark"


def pod_security_context() -> dict[str, Any]:
    """Of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": SPARK_UID,
        "runAsGroup": SPARK_UID,
        "fsGroup": SPARK_UID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security_context() -> dict[str, Any]:
    """Of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": SPARK_UID,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
