"""The check before an upgrade, on real checkpoints: what the new driver would refuse is refused while the old one could still run on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.configuration.runtime import IMAGE_VARIABLE, TERMINATION_FILE_VARIABLE, RuntimeConfiguration
from penstock.jobs.driver.check import queries_on
from penstock.jobs.driver.errors import BoundedRunOver, StateDiffers
from penstock.jobs.driver.upgrade_check import check, main
from penstock.jobs.savepoints.errors import SavepointMissing
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import SavedQuery, Savepoint
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.stage_settings import SHUFFLE_PARTITIONS
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged, CheckpointMissing
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.watermark import END_MS, Watermarks
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.spark_cluster import fast_start
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

COUNTS = "tests.jobs.spark.apps.counts"
_APP = """
from penstock import aggregate, tumbling
def build(job):
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING")
    job.write(aggregate(rows, tumbling("10s"), keys=["name"], n="count(*)"), "out")
    job.side_output("errors")
    job.side_output("late", "late")
"""
LIMIT_S = 120


class Upgraded:
    """A job with a checkpoint, and the check of what it becomes.

    Args:
        around: of the test.
        job: that has run.
    """

    def __init__(self, around: Surroundings, job: TestedJob) -> None:
        self.around, self.job = around, job
        self.folder = JobFolder(f"s3a://{CHECKPOINTS}/{job.name}")
        self.folders: tuple[str, ...] = (str(around.folder),)
        self.analyzed = 0

    def configuration(self, **conf: str) -> RuntimeConfiguration:
        return RuntimeConfiguration(
            spec=str(self.job.spec),
            app_path=self.folders,
            master="local[1]",
            # Nobody listens there, and nobody is to be asked.
            brokers="127.0.0.1:9",
            job_folder=self.folder.uri,
            output_bucket=OUTPUT,
            spark_conf=conf,
        )

    def set(self, **fields: Any) -> None:
        self.job.edit(lambda spec: spec.update(fields))

    def check(self, **conf: str) -> str:
        def analyze(configuration: RuntimeConfiguration, spec: SpecFile, checkpoint: Checkpoint) -> dict[str, QueryRecord]:
            self.analyzed += 1
            return queries_on(checkpoint, spec, [self.around.folder], self.around.session, self.around.folder)

        return check(self.configuration(**conf), analyze)

    def stored(self) -> dict[str, str]:
        listed = self.around.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=f"{self.job.name}/").get("Contents", [])
        return {item["Key"]: item["ETag"] for item in listed}


@pytest.fixture
def fresh(surroundings: Surroundings) -> Upgraded:
    """A job that has never run."""
    (surroundings.folder / "by_name.py").write_text(_APP, encoding="utf-8")
    return Upgraded(surroundings, surroundings.job(COUNTS, sources={"a": 1}))


@pytest.fixture
def upgraded(fresh: Upgraded) -> Upgraded:
    """A job that has counted a record by its key."""
    fresh.job.feed("a", {"key": "k", "at": "2025-04-05T12:30:01Z", "name": "x"})
    with fresh.job.running() as running:
        running.until_read({"a": [1]})
    return fresh


def test_a_job_that_has_never_run_can_become_anything(fresh: Upgraded) -> None:
    fresh.set(app="by_name")
    assert "there is no state" in fresh.check()
    assert fresh.stored() == {}


def test_a_change_is_taken_if_the_state_fits_and_refused_if_it_does_not(upgraded: Upgraded) -> None:
    before = upgraded.stored()
    upgraded.set(trigger="2ms", upgradeMode="savepoint")
    goes_on = f"generation 2 can go on with {upgraded.folder.uri}/checkpoints/1"
    saved = f"{goes_on}; its driver takes savepoint upgrade-1 first"
    assert upgraded.check() == saved
    more = {SHUFFLE_PARTITIONS: "8"}
    assert upgraded.check(**more) == f"{saved}; its state is repartitioned to 8 shuffle partitions"
    upgraded.set(upgradeMode="last-state")
    assert upgraded.check() == upgraded.check(**more) == goes_on
    upgraded.set(app="by_name")
    with pytest.raises(StateDiffers, match="key name instead of none"):
        upgraded.check()
    assert upgraded.stored() == before
    # The new driver says the same.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(upgraded.around.folder))
        with pytest.raises(StateDiffers, match="key name instead of none"), upgraded.job.running():
            pass


def test_where_the_state_is_left_or_not_compared_nothing_is_analyzed(upgraded: Upgraded) -> None:
    spec = upgraded.job.spec.read_text(encoding="utf-8")
    for fields, why in (
        ({"upgradeMode": "stateless"}, "there is no state"),
        ({"checkpoint": {"stateSchema": "any"}}, "Spark decides"),
        ({"rewindTo": "2025-04-05T12:00:00Z"}, "there is no state"),
    ):
        upgraded.set(app="by_name", **fields)
        assert why in upgraded.check()
        upgraded.job.spec.write_text(spec, encoding="utf-8")
    assert upgraded.analyzed == 0


def test_an_unchanged_job_is_not_analyzed(upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch) -> None:
    # The generation has begun without the folder of other apps.
    monkeypatch.setattr(upgraded, "folders", ())
    assert upgraded.check() == "nothing has changed: the driver goes on as generation 1"
    monkeypatch.setenv(IMAGE_VARIABLE, "jobs:2")
    assert upgraded.check().startswith("generation 2 can go on")
    assert upgraded.analyzed == 1


def test_a_start_from_a_savepoint_is_checked_against_the_savepoint(upgraded: Upgraded) -> None:
    folder, current = SavepointFolder(f"{upgraded.folder.uri}/savepoints/one"), upgraded.folder.current()
    assert current is not None
    upgraded.set(initialSavepointPath=folder.uri, restartNonce=1)
    with pytest.raises(SavepointMissing):
        upgraded.check()
    now = datetime.now(UTC)
    saved = Savepoint(
        name="one",
        job=upgraded.job.name,
        environment="dev",
        made=now,
        checkpoint=upgraded.folder.checkpoint(1).uri,
        generation=current,
        queries={"": SavedQuery(batch=0, at=now)},
        data="data-0",
        objects=(),
    )
    assert folder.complete(saved)
    before = upgraded.stored()
    assert upgraded.check() == f"the job can start from {folder.uri}"
    upgraded.set(app="by_name")
    with pytest.raises(StateDiffers, match="key name instead of none"):
        upgraded.check()
    assert upgraded.stored() == before


def _lose_all(checkpoint: Checkpoint) -> None:
    checkpoint.delete("identity")


def _lose_a_record(checkpoint: Checkpoint) -> None:
    checkpoint.delete(f"batches/{checkpoint.last_record().batch}.json")


def _end(checkpoint: Checkpoint) -> None:
    last = checkpoint.last_record()
    checkpoint.record(BatchRecord(batch=last.batch, token=last.token, watermarks=Watermarks(current_ms=END_MS)))


def test_a_checkpoint_that_the_new_driver_can_not_go_on_with_is_refused(upgraded: Upgraded) -> None:
    damages: list[tuple[Callable[[Checkpoint], None], type[Exception]]] = [
        (_end, BoundedRunOver),
        (_lose_a_record, CheckpointDamaged),
        (_lose_all, CheckpointMissing),
    ]
    upgraded.set(trigger="2ms")
    for damage, kind in damages:
        damage(upgraded.folder.checkpoint(1))
        with pytest.raises(kind):
            upgraded.check()
    assert upgraded.analyzed == 0


def test_as_a_process_it_leaves_its_refusal_where_kubelet_reads_it(upgraded: Upgraded, aws: EmulatedAws, tmp_path: Path) -> None:
    upgraded.set(app="by_name")
    before, message, file = upgraded.stored(), tmp_path / "termination", tmp_path / "runtime.json"
    message.touch()
    conf = {
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.driver.extraJavaOptions": fast_start(),
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    upgraded.configuration(**conf).write(file)
    environment = {**os.environ, **aws.environment(), TERMINATION_FILE_VARIABLE: str(message), "PYTHONPATH": str(layout.ROOT)}
    command = [sys.executable, "-m", "penstock.jobs.driver.upgrade_check", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1, done.stderr
    assert message.read_text().startswith("error[JOB-094]: the state does not fit the app")
    assert "key name instead of none" in message.read_text()
    assert upgraded.stored() == before


def test_a_bucket_that_is_out_of_reach_decides_nothing(fresh: Upgraded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "runtime.json"
    fresh.configuration().model_copy(update={"job_folder": "s3a://test-nowhere/clicks"}).write(file)
    assert main([str(file)]) == 5
    assert "JOB-009" in capsys.readouterr().err


def test_a_check_that_fails_by_itself_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "runtime.json"
    file.write_text("{}")
    assert main([str(file)]) == 5
    assert "JOB-100" in capsys.readouterr().err
