"""The pod that a driver runs in: what it takes of it, and how it tells it that the job reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.jobs.configuration.runtime import POD_NAME_VARIABLE, READY_FILE_VARIABLE


def pod_conf() -> dict[str, str]:
    """Spark's settings that follow from the pod; none outside of one.

    Executors that know their driver's pod belong to it, so that Kubernetes takes them away with it.
    """
    name = os.environ.get(POD_NAME_VARIABLE)
    return {"spark.kubernetes.driver.pod.name": name} if name else {}


@contextmanager
def told_ready() -> Iterator[None]:
    """While it lasts the pod is ready: a file says so, which its readiness probe looks for."""
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
    """Takes away what a driver that was killed has left: the pod's folders outlive its container."""
    file = os.environ.get(READY_FILE_VARIABLE)
    if file:
        Path(file).unlink(missing_ok=True)
