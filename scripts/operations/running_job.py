"""A job in a cluster, for what stops it and starts it again: with a driver of its own, or in a session."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kubernetes import client

from penstock.scripts.operations.resuming import driver_of, is_ready, resume
from penstock.scripts.provisioning.draining import LOOK_EVERY_S, POD_MARGIN_S, stop_job
from penstock.scripts.provisioning.errors import DriverNotReady

# As a release waits: for a node, the image, Spark's start and its executors.
READY_LIMIT_S = 600.0


class RunningJob(Protocol):
    """A job in a cluster. Each of its methods may raise DEP-007 and DEP-010."""

    @property
    def name(self) -> str:
        """Of the job."""

    def refuse_missing(self) -> None:
        """Raises JobNotDeployed, DEP-017, if it is not there."""

    def stop(self, margin_s: float = POD_MARGIN_S) -> bool:
        """Stop it at the end of its micro-batch, and wait for that.

        Args:
            margin_s: seconds that it may take in addition to the grace period of its driver's pod.

        Returns:
            Whether it was to run before.

        Raises:
            StillThere: DEP-011.
            JobNotDeployed: DEP-017.
        """

    def resume(self) -> bool:
        """Start it if it does not run. Its failures so far do not count any more.

        Returns:
            Whether it was started; False if it runs or starts already.

        Raises:
            JobNotDeployed: DEP-017.
            PenstockError: JOB-009, JOB-082.
        """

    @property
    def reads(self) -> bool:
        """Whether its queries read."""


@dataclass(frozen=True)
class OwnDriver:
    """A job with a driver of its own; or a session, with all its jobs.

    Args:
        api: client of the cluster's API.
        name: of the job, or of the session.
        forgive: has the job's failures so far count no more.
    """

    api: client.ApiClient
    name: str
    forgive: Callable[[], object]

    def refuse_missing(self) -> None:
        """As `RunningJob.refuse_missing`."""
        driver_of(self.api, self.name)

    def stop(self, margin_s: float = POD_MARGIN_S) -> bool:
        """As `RunningJob.stop`: until all its pods are gone."""
        return stop_job(self.api, self.name, margin_s)

    def resume(self) -> bool:
        """As `RunningJob.resume`."""
        return resume(self.api, self.name, self.forgive)

    @property
    def reads(self) -> bool:
        """As `RunningJob.reads`: whether its driver's pod is ready."""
        return is_ready(driver_of(self.api, self.name))


def wait_until_it_reads(name: str, reads: Callable[[], bool], why_not: Callable[[], str], limit_s: float = READY_LIMIT_S) -> None:
    """Wait until the queries of a job read, or those of all jobs of a session.

    Args:
        name: of the job or the session, for the error.
        reads: whether they do.
        why_not: what is known of a driver that is not ready.
        limit_s: timeout in seconds.

    Raises:
        DriverNotReady: DEP-018.
    """
    until_s = time.monotonic() + limit_s
    while not reads():
        if time.monotonic() > until_s:
            fix = "check penstock status and penstock doctor; the driver is started on, and penstock stop ends that"
            raise DriverNotReady(path=name, given=why_not(), need=f"a query that reads within {limit_s:g} s", fix=fix)
        time.sleep(LOOK_EVERY_S)
