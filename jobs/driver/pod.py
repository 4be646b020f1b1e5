"""The pod that a driver runs in: settings derived from it, and its readiness."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.jobs.configuration.runtime import POD_NAME_VARIABLE, POD_UID_VARIABLE, READY_FILE_VARIABLE
from penstock.jobs.storage.lease_holder import LeaseHolder


def pod_conf() -> dict[str, str]:
    """Spark settings that follow from the pod; empty outside of one.

    Executors that know their driver's pod are owned by it, so that Kubernetes deletes them with it.
    """
    name = os.environ.get(POD_NAME_VARIABLE)
    return {"spark.kubernetes.driver.pod.name": name} if name else {}


def this_driver() -> LeaseHolder:
    """This process as the holder of a lease."""
    return LeaseHolder.this_process(os.environ.get(POD_NAME_VARIABLE) or None, os.environ.get(POD_UID_VARIABLE) or None)


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
