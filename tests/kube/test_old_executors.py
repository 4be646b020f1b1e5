"""What an earlier container of a driver has left is deleted, with the rights of the driver's own service account, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.jobs.configuration.runtime import POD_NAME_VARIABLE
from penstock.jobs.driver.old_executors import delete_old_executors
from penstock.scripts.kube.api_server import ApiServer
from tests.kube.deployed import Deployment, user_credit
from tests.kube.objects import Object, Objects

BROKERS = "127.0.0.1:9092"


def _deployed(kube: ApiServer, objects: Objects, name: str) -> tuple[Deployment, Object]:
    deployment = Deployment(user_credit(BROKERS, name=name), kube, objects)
    deployment.apply(without=("StatefulSet",))
    return deployment, objects.create(deployment.driver_pod())


def _executor(job: DeployedJob, number: int) -> Object:
    """An executor's pod as Spark makes it of the template."""
    pod = executor_pod_template(job)
    labels = {**pod["metadata"]["labels"], "spark-role": "executor"}
    pod["metadata"] = {"name": f"{job.name}-exec-{number}", "namespace": job.namespace, "labels": labels}
    pod["spec"]["serviceAccountName"] = job.service_account("executor")
    asked = {"cpu": "100m", "memory": "100Mi"}
    (container,) = pod["spec"]["containers"]
    container |= {"image": job.image, "resources": {"requests": asked, "limits": {"memory": asked["memory"]}}}
    return pod


def _account(deployment: Deployment, pod: Object, folder: Path) -> Path:
    """The folder that kubelet mounts for the driver's service account."""
    deployment.token(pod, folder / "token")
    (folder / "namespace").write_text(deployment.job.namespace, "utf-8")
    shutil.copy(deployment.kube.ca, folder / "ca.crt")
    return folder


def _pods(objects: Objects, job: DeployedJob) -> list[str]:
    return [pod["metadata"]["name"] for pod in objects.list("v1", "Pod", job.namespace)]


def test_only_the_jobs_own_executors_are_deleted(
    kube: ApiServer, objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment, driver = _deployed(kube, objects, "old-executors")
    other, _ = _deployed(kube, objects, "other-executors")
    own, others = deployment.job, other.job
    for job in (own, others):
        for number in (1, 2):
            objects.create(_executor(job, number))
    # In the job's own namespace, of another job.
    stray = _executor(own, 3)
    stray["metadata"]["labels"] |= {"penstock.dev/job": others.name}
    objects.create(stray)
    account = _account(deployment, driver, tmp_path)
    monkeypatch.delenv(POD_NAME_VARIABLE, raising=False)
    delete_old_executors(own.name, api=kube.url, account=account)
    assert len(_pods(objects, own)) == 4, "outside of a pod nothing is deleted"
    monkeypatch.setenv(POD_NAME_VARIABLE, driver["metadata"]["name"])
    delete_old_executors(own.name, api=kube.url, account=account)
    assert _pods(objects, own) == sorted([driver["metadata"]["name"], stray["metadata"]["name"]])
    assert len(_pods(objects, others)) == 3
    said = capsys.readouterr().err
    assert said == "WARN deleted executors of an earlier container: old-executors-exec-1, old-executors-exec-2\n"
    delete_old_executors(own.name, api=kube.url, account=account)
    assert capsys.readouterr().err == ""


def test_a_driver_goes_on_that_may_not_delete_or_reaches_no_api(
    kube: ApiServer, objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment, driver = _deployed(kube, objects, "no-right-to-delete")
    monkeypatch.setenv(POD_NAME_VARIABLE, driver["metadata"]["name"])
    delete_old_executors(deployment.job.name, api=kube.url, account=tmp_path)
    assert "FileNotFoundError" in capsys.readouterr().err
    account = _account(deployment, driver, tmp_path)
    (account / "namespace").write_text("kube-system", "utf-8")
    delete_old_executors(deployment.job.name, api=kube.url, account=account)
    assert "403 Forbidden" in capsys.readouterr().err
    delete_old_executors(deployment.job.name, api="https://127.0.0.1:1", account=account)
    assert "WARN executors of an earlier container are not deleted: ConnectError" in capsys.readouterr().err
