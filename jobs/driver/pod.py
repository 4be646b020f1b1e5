"""The pod that a driver runs in: settings derived from it, and its readiness."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.jobs.configuration.runtime import POD_NAME_VARIABLE, POD_UID_VARIABLE, READY_FILE_VARIABLE
from penstock.jobs.storage.lease_holder import LeaseHolder

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
