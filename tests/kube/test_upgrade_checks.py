"""An upgrade of a job's release by Helm: checked before any object changes. What the controller of Jobs and the kubelet would do with the
check's pod, the test does: it runs the container's own command on the files of the hook's ConfigMap, with an emulated S3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import pytest

from penstock.infra.manifests.client_mode_conf import CONFIGURATION_FOLDER
from penstock.infra.manifests.config_map import RUNTIME
from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import PYTHON
from penstock.infra.manifests.job import job_manifests
from penstock.infra.manifests.upgrade_check import upgrade_check
from penstock.jobs.configuration.runtime import TERMINATION_FILE_VARIABLE
from penstock.jobs.state_schema import Column, StateSchema
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.generation import Fingerprint, Generation, Versions
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.local.spark_cluster import fast_start
from tests.kube.charts import Release, attempted, named, ran
from tests.kube.deployed import user_credit
from tests.kube.objects import Objects

BUCKET = "test-checkpoints"
LIMIT_S = 300
APP = """\
from pyspark.sql import functions as F
from penstock import Job

OPERATORS = {{"read": None, "sums": "other"}}

def build(job: Job) -> None:
    rows = job.source("a", "user STRING, bid INT, ask INT").df
    job.write(rows.groupBy("user").agg({aggregates}), "out")
    job.side_output("errors")
"""
SUMS = ('F.sum("bid").alias("bids")', 'F.sum("ask").alias("asks")')
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {{name: {name}}}
spec:
  app: {app}
  parallelism: 1
  executor: {{slots: 1, memory: 2g}}
  sources: {{a: {{kafka: {{topic: clicks}}}}}}
  sinks:
    out: {{postgres: {{connection: shop, table: sums, key: [user]}}}}
    errors: {{kafka: {{topic: errors}}}}
"""
STATE = StateSchema(
    keys=(Column(name="user", type="string"),),
    values=(Column(name="sum(bid)", type="bigint"), Column(name="sum(ask)", type="bigint")),
)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as emulated:
        yield emulated


class Deployed:
    """A job that has run as its first generation, and whose release is in the API.

    Args:
        kube: the API.
        objects: of it.
        helm: the command.
        chart: of releases.
        aws: emulated, with its checkpoint.
        folder: for the app and all files.
    """

    def __init__(self, kube: ApiServer, objects: Objects, helm: Path, chart: Path, aws: EmulatedAws, folder: Path) -> None:
        self.kube, self.objects, self.helm, self.aws, self.folder = kube, objects, helm, aws, folder
        self.chart = chart
        self.name = f"u{uuid.uuid4().hex[:6]}"
        for app, aggregates in {"same": SUMS, "swapped": SUMS[::-1]}.items():
            (folder / f"{app}.py").write_text(APP.format(aggregates=", ".join(aggregates)), encoding="utf-8")
        self._run()
        self.first = self.release("same", "1.0.0")
        done = attempted(helm, "install", *self._arguments(self.first))
        assert done.returncode == 0, done.stderr
        self.ready()

    def _run(self) -> None:
        s3 = boto3.client(
            "s3", endpoint_url=self.aws.endpoint, region_name="us-east-1", aws_access_key_id="1" * 12, aws_secret_access_key="emulated"
        )
        s3.create_bucket(Bucket=BUCKET)
        folder = JobFolder(f"s3a://{BUCKET}/{self.name}", s3)
        checkpoint = folder.checkpoint(1)
        checkpoint.identity()
        checkpoint.record(BatchRecord(batch=3))
        s3.put_object(Bucket=BUCKET, Key=f"{self.name}/checkpoints/1/commits/3", Body=b"v1\n{}")
        what = {"fingerprint": Fingerprint(app="a", spec="s", plan="p"), "versions": Versions(penstock=None, spark="4.3.0")}
        began = {"number": 1, "checkpoint": 1, "parent": None, "mode": "last-state", "began": datetime.now(UTC)}
        queries = {"": QueryRecord.of(["a"], ["Aggregate"], [STATE])}
        folder.begin(Generation.model_validate({**began, **what, "queries": queries}))

    def job(self, app: str, tag: str, more: str = "") -> DeployedJob:
        shipped = user_credit("b-1.kafka.internal:9098", name=self.name)
        image = f"{shipped.image.rpartition(':')[0]}:{tag}"
        return replace(shipped, spec_text=SPEC.format(name=self.name, app=app) + more, image=image, connections={}, secrets={})

    def release(self, app: str, tag: str, more: str = "") -> Release:
        job = self.job(app, tag, more)
        values = json.dumps({"manifests": [*job_manifests(job), *upgrade_check(job)]})
        return Release(job.namespace, "kube-system", self.chart, values)

    def _arguments(self, release: Release) -> list[str | Path]:
        options = ("--namespace", release.namespace, "--kubeconfig", self.kube.kubeconfig)
        return [release.name, release.chart, "--values", release.values_file(self.folder), *options]

    def ready(self) -> None:
        """What the StatefulSet's controller says once the driver reads."""
        (driver,) = (one for one in self.first.manifests if one["kind"] == "StatefulSet")
        status = {"observedGeneration": self.objects.get(driver)["metadata"]["generation"], "currentRevision": "1", "updateRevision": "1"}
        self.objects.set_status(driver, {**status, **dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), 1)})

    def versions(self) -> dict[tuple[str, str, str], str]:
        """The version that the API has of each object; it is another one after any change."""
        return {key: self.objects.get(one)["metadata"]["resourceVersion"] for key, one in named(self.first.manifests).items()}

    def upgrade(self, release: Release, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Upgrades the release, and says what its check has ended with.

        Returns:
            Helm's end, and the state of the check's container.
        """
        done: list[subprocess.CompletedProcess[str]] = []
        thread = Thread(target=lambda: done.append(attempted(self.helm, "upgrade", *self._arguments(release), *options)))
        thread.start()
        check = next(one for one in release.hooks if one["kind"] == "Job")
        selector = "app.kubernetes.io/component=upgrade-check"
        (found,) = self.objects.wait_for(check, selector, _is_new, LIMIT_S)
        # Before it has passed, nothing has changed.
        before = self.versions()
        ended = self._run_pod(found)
        assert self.versions() == before
        kind = "Complete" if ended["exitCode"] == 0 else "Failed"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        first = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
        conditions = [{"type": one, "status": "True", "lastTransitionTime": now, "reason": "PodFailurePolicy"} for one in (first, kind)]
        counts = {"succeeded": 1, "completionTime": now} if kind == "Complete" else {"failed": 1}
        self.objects.set_status(check, {"startTime": now, "uncountedTerminatedPods": {}, "conditions": conditions, **counts})
        thread.join(LIMIT_S)
        return done[0], ended

    def _run_pod(self, check: dict[str, Any]) -> dict[str, Any]:
        """Runs the container of a Job's pod on this machine, with the files that its ConfigMap has in the API."""
        spec = check["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        (volume,) = (one["configMap"]["name"] for one in spec["volumes"] if "configMap" in one)
        metadata = {"name": volume, "namespace": check["metadata"]["namespace"]}
        files = self.objects.get({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})["data"]
        mounted = self.folder / "mounted"
        mounted.mkdir(exist_ok=True)
        for name, text in files.items():
            (mounted / name).write_text(text.replace(f'"{CONFIGURATION_FOLDER}/', f'"{mounted}/'), encoding="utf-8")
        runtime = json.loads((mounted / RUNTIME).read_text("utf-8"))
        # The image has Spark's jars, and the team's apps, at places of its own.
        runtime["appPath"] = [str(self.folder)]
        here = {"spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()), "spark.local.dir": str(mounted)}
        runtime["sparkConf"] |= {**here, "spark.driver.defaultJavaOptions": fast_start()}
        (mounted / RUNTIME).write_text(json.dumps(runtime), encoding="utf-8")
        message = self.folder / "termination-log"
        message.write_text("")
        given = {one["name"]: one["value"] for one in container["env"]}
        environment = {**os.environ, **given, **self.aws.environment(), TERMINATION_FILE_VARIABLE: str(message)}
        environment |= {"PYTHONPATH": str(layout.ROOT), "HOME": os.environ["HOME"]}
        command = container["command"][container["command"].index(PYTHON) + 1 :]
        command = [one.replace(f"{CONFIGURATION_FOLDER}/", f"{mounted}/") for one in command]
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return {"exitCode": done.returncode, "message": message.read_text("utf-8") or done.stderr}


@pytest.fixture
def deployed(kube: ApiServer, objects: Objects, helm: Path, charts: list[Release], aws: EmulatedAws, tmp_path: Path) -> Deployed:
    return Deployed(kube, objects, helm, charts[0].chart, aws, tmp_path)


def test_an_upgrade_that_the_state_fits_is_released_after_its_check(deployed: Deployed) -> None:
    done, ended = deployed.upgrade(deployed.release("same", "2.0.0"))
    assert ended == {"exitCode": 0, "message": ended["message"]}, ended
    assert done.returncode == 0, done.stderr
    (driver,) = (one for one in deployed.first.manifests if one["kind"] == "StatefulSet")
    assert deployed.objects.get(driver)["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2.0.0")
    for kind, version in (("Job", "batch/v1"), ("ConfigMap", "v1")):
        left = deployed.objects.list(version, kind, f"job-{deployed.name}", "app.kubernetes.io/component=upgrade-check")
        assert not left


def test_an_upgrade_that_the_state_does_not_fit_fails_and_no_object_changes(deployed: Deployed) -> None:
    before = deployed.versions()
    # As Terraform's provider calls Helm: the failed upgrade is rolled back, to what has not changed.
    done, ended = deployed.upgrade(deployed.release("swapped", "2.0.0"), "--atomic", "--timeout", "120s")
    assert ended["exitCode"] == 1, ended
    assert ended["message"].startswith("error[JOB-094]: the state does not fit the app")
    assert "values in the order sum(ask), sum(bid) instead of sum(bid), sum(ask)" in ended["message"]
    assert done.returncode != 0
    assert "pre-upgrade hooks failed" in done.stderr
    assert "rolled back" in done.stderr
    assert deployed.versions() == before
    status = json.loads(ran(deployed.helm, "status", deployed.first.name, *_place(deployed), "-o", "json"))
    assert status["info"]["status"] == "deployed"
    # The next upgrade replaces what the refused one has left, and leaves the state.
    again, taken = deployed.upgrade(deployed.release("swapped", "2.0.0", "  upgradeMode: stateless\n"))
    assert (again.returncode, taken["exitCode"]) == (0, 0), again.stderr


def _is_new(jobs: Sequence[dict[str, Any]]) -> bool:
    """Whether there is one Job, and not that of an upgrade that was refused before."""
    return len(jobs) == 1 and not jobs[0].get("status", {}).get("conditions")


def _place(deployed: Deployed) -> list[str | Path]:
    return ["--namespace", deployed.first.namespace, "--kubeconfig", deployed.kube.kubeconfig]
