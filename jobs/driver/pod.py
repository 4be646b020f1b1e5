"""The pod that a driver runs in: settings derived from it, its readiness, and why its container has ended."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.jobs.configuration.runtime import (
    POD_NAME_VARIABLE,
    POD_UID_VARIABLE,
    READY_FILE_VARIABLE,
    TERMINATION_FILE_VARIABLE,
)
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.sizing.errors import PenstockError

# Source: Kubernetes, MaxContainerTerminationMessageLength of pkg/kubelet/container; kubelet reads no more.
_LONGEST_MESSAGE_BYTES = 4096
_CUT = "\n..."

# Source: Kubernetes' documentation, "Accessing the Kubernetes API from a Pod".
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def pod_conf() -> dict[str, str]:
    """Spark settings that follow from the pod; empty outside of one.

    Executors that know their driver's pod are owned by it, so that Kubernetes deletes them with it.
    """
    name = os.environ.get(POD_NAME_VARIABLE)
    return {"spark.kubernetes.driver.pod.name": name} if name else {}


def this_driver() -> LeaseHolder:
    """This process as the holder of a lease."""
    name, uid = (os.environ.get(variable) or None for variable in (POD_NAME_VARIABLE, POD_UID_VARIABLE))
    return LeaseHolder.this_process(name, uid, _namespace() if name else None)


def _namespace() -> str | None:
    """The pod's namespace with a checksum of its cluster's CA, as ``flights@1c0f...``: a job may have pods of the same name elsewhere."""
    try:
        name, authority = (SERVICE_ACCOUNT / "namespace").read_text("ascii"), (SERVICE_ACCOUNT / "ca.crt").read_bytes()
    except OSError:
        return None
    return f"{name.strip()}@{hashlib.sha256(authority).hexdigest()[:16]}"


@contextmanager
def reported_ready() -> Iterator[None]:
    """Context during which the pod is ready: a file that its readiness probe checks."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if not file:
        yield
        return
    path = Path(file)
    path.touch()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def forget_ready() -> None:
    """Removes what a killed driver left behind: the pod's volumes outlive its container."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if file:
        Path(file).unlink(missing_ok=True)


def leave_message(error: PenstockError) -> None:
    """Writes the failure that ends the container where kubelet reads it: `kubectl describe pod` shows it as the last state's message.

    The file exists only in a pod, where kubelet mounts it; one that can't be written is a warning.
    """
    file = os.environ.get(TERMINATION_FILE_VARIABLE)
    if not file or not Path(file).exists():
        return
    try:
        Path(file).write_bytes(termination_message(error))
    except OSError as failure:
        print(f"WARN no termination message: {failure}", file=sys.stderr)


def termination_message(error: PenstockError) -> bytes:
    """The errors as text, in UTF-8 and no longer than kubelet reads; cut between two characters."""
    text = error.render().encode()
    if len(text) <= _LONGEST_MESSAGE_BYTES:
        return text
    return text[: _LONGEST_MESSAGE_BYTES - len(_CUT)].decode(errors="ignore").encode() + _CUT.encode()
