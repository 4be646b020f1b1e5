"""What is said of an upgrade that its check has refused, as the API has it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from kubernetes import client

from penstock.scripts.operations.refused_upgrades import refusals
from tests.kube.objects import Object, Objects

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


def ended(objects: Objects, job: str, phase: str, message: str, component: str = "upgrade-check", session: str | None = None) -> Object:
    """A pod of a job that has ended, as the kubelet reports it; of one with a driver of its own, or in a session."""
    namespace = f"job-{session or job}"
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    objects.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
    labels = {"penstock.dev/job": session or job, "app.kubernetes.io/component": component}
    if session is not None:
        labels |= {"app.kubernetes.io/instance": job, "penstock.dev/session": session}
    metadata = {"name": f"{job}-{component}", "namespace": namespace, "labels": labels}
    spec = {"containers": [{"name": component, "image": "none"}], "restartPolicy": "Never"}
    pod = objects.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    state = {"terminated": {"exitCode": 1 if phase == "Failed" else 0, "message": message}}
    container = {"name": component, "image": "none", "imageID": "none", "ready": False, "restartCount": 0, "state": state}
    objects.set_status(pod, {"phase": phase, "containerStatuses": [container]})
    return pod


def test_the_message_of_a_failed_check_is_read_and_nothing_else_is(api: client.ApiClient, objects: Objects) -> None:
    refused, taken, other = (f"r{uuid.uuid4().hex[:6]}" for _ in range(3))
    ended(objects, refused, "Failed", "error[JOB-094]: the state does not fit the app\n")
    ended(objects, taken, "Succeeded", "")
    ended(objects, other, "Failed", "error[JOB-001]: cannot reach the brokers", component="driver")
    found = refusals(api, LONG_AGO)
    assert found[refused] == "error[JOB-094]: the state does not fit the app"
    assert taken not in found and other not in found
    # One of an earlier deploy says nothing of this one.
    assert refused not in refusals(api, datetime.now(UTC) + timedelta(hours=1))


def test_of_a_session_the_jobs_are_named_that_are_refused(api: client.ApiClient, objects: Objects) -> None:
    session, one, other, taken = (f"r{uuid.uuid4().hex[:6]}" for _ in range(4))
    for job, code in ((one, "JOB-094"), (other, "JOB-086")):
        ended(objects, job, "Failed", f"error[{code}]", session=session)
    ended(objects, taken, "Succeeded", "", session=session)
    found = refusals(api, LONG_AGO)
    assert {name: found[name] for name in found.keys() & {session, one, other, taken}} == {one: "error[JOB-094]", other: "error[JOB-086]"}
