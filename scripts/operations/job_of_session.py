"""A job of a session in a cluster: stopped and started again by a request to the session's driver, which leaves the other jobs alone.

The request is a key of a ConfigMap that the driver's pod mounts. The kubelet mounts what has changed within a minute or so, and at once
when the pod itself changes, which an annotation does.
Source: Kubernetes, "Configure a Pod to Use a ConfigMap", "Mounted ConfigMaps are updated automatically".

Whether the job has done as it was asked is seen in its folder on S3, where each run of it is recorded.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from penstock.infra.manifests.deployed_job import driver_host_name, driver_name, namespace
from penstock.jobs.configuration.session import SESSION, STOP, requests_config_map
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.scripts.operations.job_status import JobStatus
from penstock.scripts.operations.resuming import driver_of
from penstock.scripts.provisioning.draining import LOOK_EVERY_S, OF_PENSTOCK, POD_MARGIN_S
from penstock.scripts.provisioning.errors import JobNotDeployed, SessionIsStopped, StillThere
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked

# Its process has ended, or nothing runs it.
_ENDED = ("not started", "stopped", "finished", "restarting", "failed", "lost", "unreadable")
# Has the kubelet look at the pod's volumes.
_ASKED = "penstock.dev/asked"
_ABSENT = 404
# Ours: the kubelet mounts what has changed after its sync period of a minute at the latest, with some variation, if it has not before.
KUBELET_S = 120.0


@dataclass(frozen=True)
class JobOfSession:
    """A job of a session, as `penstock.scripts.operations.running_job.RunningJob`.

    Args:
        api: client of the cluster's API.
        name: of the job.
        session: its session.
        runs: of the job.
        status: of the job now.
        kubelet_s: until the driver has what it is asked, in seconds.
    """

    api: client.ApiClient
    name: str
    session: str
    runs: DriverRunsFile
    status: Callable[[], JobStatus]
    kubelet_s: float = KUBELET_S

    def refuse_missing(self) -> None:
        """As `RunningJob.refuse_missing`: also if the session that is deployed does not have the job."""
        driver_of(self.api, self.session)
        with asked(f"the jobs of session {self.session}"):
            found = client.CoreV1Api(self.api).read_namespaced_config_map(
                driver_name(self.session), namespace(self.session), _request_timeout=REQUEST_LIMIT_S
            )
        jobs = sorted(json.loads(found.data[SESSION])["jobs"])
        if self.name not in jobs:
            given = f"the session has {', '.join(jobs)}"
            raise JobNotDeployed(path=self._path, given=given, need="the job in it", fix="deploy it: penstock deploy ENV jobs-charts")

    def stop(self, margin_s: float = POD_MARGIN_S) -> bool:
        """As `RunningJob.stop`: until its run has ended. It stays stopped, also after a deploy, until it is resumed."""
        driver = driver_of(self.api, self.session)
        was = self._request()
        if was != STOP:
            self._ask(STOP)
        if driver.spec.replicas != 0:
            grace_s = driver.spec.template.spec.termination_grace_period_seconds or 0
            self._wait_until_ended(grace_s + self.kubelet_s + margin_s)
        return was != STOP

    def resume(self) -> bool:
        """As `RunningJob.resume`. Raises SessionIsStopped, DEP-064, if its session does not run."""
        if driver_of(self.api, self.session).spec.replicas == 0:
            need, fix = "a session that runs", f"run it: penstock resume ENV --session {self.session}"
            raise SessionIsStopped(path=self._path, given="it is stopped, with all its jobs", need=need, fix=fix)
        if self._request() != STOP and self.status().state not in ("failed", "restarting"):
            return False
        # Before it starts: it reads it.
        self.runs.change(DriverRuns.resumed)
        self._ask(f"run, asked at {datetime.now(UTC).isoformat()}")
        return True

    @property
    def reads(self) -> bool:
        """As `RunningJob.reads`: by the record of its run."""
        known = self.runs.read()
        run = known.runs[-1] if known.runs else None
        return run is not None and run.ended is None and run.reading is not None and run.token > known.resumed_after

    @property
    def _path(self) -> str:
        return f"job {self.name}, session {self.session}"

    def _wait_until_ended(self, limit_s: float) -> None:
        until_s = time.monotonic() + limit_s
        while (state := self.status().state) not in _ENDED:
            if time.monotonic() > until_s:
                fix = f"check penstock logs ENV --session {self.session}; then retry"
                raise StillThere(path=self._path, given=state, need=f"stopped within {limit_s:g} s", fix=fix)
            time.sleep(LOOK_EVERY_S)

    def _request(self) -> str | None:
        """What somebody has asked of it; None if nobody has asked anything."""
        with asked(f"the requests to session {self.session}"):
            try:
                found = client.CoreV1Api(self.api).read_namespaced_config_map(*self._place, _request_timeout=REQUEST_LIMIT_S)
            except ApiException as error:
                if error.status == _ABSENT:
                    return None
                raise
        text: str | None = (found.data or {}).get(self.name)
        return text

    def _ask(self, request: str) -> None:
        core = client.CoreV1Api(self.api)
        with asked(f"the requests to session {self.session}"):
            name, place = self._place
            try:
                core.patch_namespaced_config_map(name, place, {"data": {self.name: request}}, _request_timeout=REQUEST_LIMIT_S)
            except ApiException as error:
                if error.status != _ABSENT:
                    raise
                core.create_namespaced_config_map(place, self._config_map({self.name: request}), _request_timeout=REQUEST_LIMIT_S)
            self._have_it_mounted(core)

    def _have_it_mounted(self, core: client.CoreV1Api) -> None:
        changed = {"metadata": {"annotations": {_ASKED: datetime.now(UTC).isoformat()}}}
        try:
            core.patch_namespaced_pod(driver_host_name(self.session), namespace(self.session), changed, _request_timeout=REQUEST_LIMIT_S)
        except ApiException as error:
            # One that starts reads it when it has started.
            if error.status != _ABSENT:
                raise

    def _config_map(self, data: Mapping[str, str]) -> dict[str, Any]:
        name, place = self._place
        part, value = OF_PENSTOCK.split("=")
        return {"metadata": {"name": name, "namespace": place, "labels": {part: value}}, "data": dict(data)}

    @property
    def _place(self) -> tuple[str, str]:
        return requests_config_map(self.session), namespace(self.session)
