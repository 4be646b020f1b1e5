"""``penstock upgrade plan``: specs of files beside what the generations of their jobs have recorded, on an emulated S3."""

from __future__ import annotations

import argparse
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.parts.jobs import EnvironmentJob
from penstock.infra.parts.sessions import Session
from penstock.infra.plans import plans
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.driver.fingerprint import app_hash, spec_hash
from penstock.jobs.storage.driver_runs import DriverRun, DriverRuns, DriverRunsFile
from penstock.jobs.storage.generation import Fingerprint, Generation, RecordedSpec, Versions
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.cli import upgrade
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.small_stacks import environment

APP = "def build(job):\n    job.write(job.source('a', 'user STRING'), 'out')\n"
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 4
  executor: {slots: 2, memory: 2g}
  sources:
    a: {kafka: {topic: clicks}}
  sinks:
    out: {files: {path: clicks}}
"""


class Place:
    """An environment with a job, and its folder on S3.

    Args:
        aws: emulated.
        folder: for the files.
    """

    def __init__(self, aws: EmulatedAws, folder: Path) -> None:
        self.spec, self.file = folder / "clicks.yaml", folder / "environment.yaml"
        (folder / "app.py").write_text(APP)
        self.spec.write_text(SPEC)
        data = environment(aws, f"up{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
        data["spec"]["jobs"] = [str(self.spec)]
        self.own = Environment.model_validate(data)
        self.file.write_text(self.own.text())
        self.s3 = AwsAccess(self.own).client("s3")
        self.s3.create_bucket(Bucket=self.own.spec.buckets.checkpoints)
        self.folder = JobFolder(f"s3a://{self.own.spec.buckets.checkpoints}/clicks", self.s3)

    def begin(self, *, recorded: bool = True, tag: str | None = None) -> None:
        """The job begins as it is now."""
        (job,) = plans(self.own).jobs
        spec = job.spec
        tag = tag or self.own.spec.registry.image_tag
        ran = Fingerprint(app=app_hash(spec, []), spec=spec_hash(spec), plan=plan_hash(job.plan), image=f"registry/jobs:{tag}")
        began = {"number": 1, "checkpoint": 1, "parent": None, "mode": "last-state", "began": datetime.now(UTC)}
        self.folder.begin(Generation.model_validate({**began, "fingerprint": ran, "versions": Versions(penstock=None, spark="4.3.0")}))
        if recorded:
            self.folder.record_spec(1, RecordedSpec(text=spec.document.text))

    def with_parallelism(self, value: int) -> None:
        """The environment sets the job's parallelism."""
        self.own = self.own.with_spec(jobs=[EnvironmentJob(spec=str(self.spec), parallelism=value)])
        self.file.write_text(self.own.text())

    def ran_in(self, pod: str) -> None:
        """The job has run in this pod."""
        made = {"driver": f"pod {pod}", "pod_uid": None, "fingerprint": Fingerprint(app="", spec="", plan="", image=None)}
        run = DriverRun.model_validate({"token": 1, "started": datetime.now(UTC), **made})
        DriverRunsFile(self.folder.uri, self.s3).change(lambda _: DriverRuns().begun(run))

    def in_session(self, *sessions: str) -> None:
        """The job is in a session, or has a driver of its own."""
        self.own = self.own.with_spec(sessions=[Session(name=name, jobs=["clicks"]) for name in sessions])
        self.file.write_text(self.own.text())

    def change(self, old: str, new: str) -> None:
        text = self.spec.read_text()
        assert old in text
        self.spec.write_text(text.replace(old, new))

    def plan(self, capsys: pytest.CaptureFixture[str], output: str = "json") -> tuple[int, Any]:
        parser = argparse.ArgumentParser()
        upgrade.add_arguments(parser)
        code = upgrade.run(parser.parse_args(["plan", str(self.file), "-o", output]))
        said = capsys.readouterr().out
        if output == "table":
            return code, said
        (job,) = json.loads(said)["jobs"]
        return code, job


@pytest.fixture
def place(aws: EmulatedAws, tmp_path: Path) -> Place:
    return Place(aws, tmp_path)


def test_a_job_that_has_not_run_and_one_that_has_not_changed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.plan(capsys)[1]["state"] == "not running yet"
    place.begin()
    code, job = place.plan(capsys)
    assert (code, job["state"], job["generation"], job["changes"], job["plan"]) == (0, "unchanged", 1, [], [])


def test_changes_of_spec_app_and_image_are_shown_with_what_they_mean_and_the_plan(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.begin(tag="0.0.9")
    place.change("parallelism: 4", "parallelism: 8\n  trigger: 3s")
    (place.spec.parent / "app.py").write_text(f"{APP}# another\n")
    code, job = place.plan(capsys)
    assert (code, job["state"], job["effect"], job["savepoint"]) == (0, "goes on with its state", "restart with state", None)
    changes = {one["what"]: (one["before"], one["now"], one["effect"]) for one in job["changes"]}
    assert changes["spec.parallelism"] == ("4", "8", "restart")
    assert changes["spec.trigger"] == ("not set", '"3s"', "restart")
    assert changes["image"] == ("0.0.9", place.own.spec.registry.image_tag, "restart")
    assert changes["app"][2] == "restart with state"
    assert changes["plan"][2] == "restart"
    assert {one["what"]: (one["before"], one["now"]) for one in job["plan"]}["executors"] == ("2", "4")
    _, text = place.plan(capsys, "table")
    assert "clicks: goes on with its state (generation 1 runs)" in text
    assert "spec.parallelism" in text
    place.change("trigger: 3s", "trigger: 3s\n  upgradeMode: savepoint")
    assert place.plan(capsys)[1]["savepoint"] == "upgrade-1"
    assert "its driver first takes savepoint upgrade-1" in place.plan(capsys, "table")[1]


def test_the_parallelism_of_the_environment_is_what_runs_and_what_is_planned(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.with_parallelism(2)
    place.begin()
    assert place.plan(capsys)[1]["state"] == "unchanged"
    place.with_parallelism(6)
    _, job = place.plan(capsys)
    changes = {one["what"]: (one["before"], one["now"]) for one in job["changes"]}
    assert changes["spec.parallelism"] == ("2", "6")
    assert set(changes) == {"spec.parallelism", "plan"}
    assert {one["what"]: (one["before"], one["now"]) for one in job["plan"]}["executors"] == ("1", "3")


def test_a_change_that_the_state_can_not_follow_is_said_and_possible_without_the_state(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.begin()
    place.change("topic: clicks}", "topic: others}")
    code, job = place.plan(capsys)
    assert (code, job["state"], job["effect"]) == (1, "goes on with its state", "state must be reset")
    place.change("  parallelism: 4", "  parallelism: 4\n  upgradeMode: stateless")
    code, job = place.plan(capsys)
    assert (code, job["state"]) == (0, "begins without its state")


def test_a_generation_of_an_earlier_release_has_no_spec_and_that_is_said(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.begin(recorded=False)
    place.change("parallelism: 4", "parallelism: 8")
    code, job = place.plan(capsys)
    assert code == 0
    assert [one["what"] for one in job["changes"]] == ["plan"]
    assert "recorded no spec" in job["notes"][0]


def test_a_move_into_a_session_and_out_of_it_is_a_change(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.begin()
    for pod, sessions, moved in (
        ("clicks-driver-0", ("shared",), ("a driver of its own", "session shared")),
        ("shared-driver-0", ("shared",), None),
        ("other-driver-0", ("shared",), ("session other", "session shared")),
        ("shared-driver-0", (), ("session shared", "a driver of its own")),
        ("clicks-driver-0", (), None),
    ):
        place.ran_in(pod)
        place.in_session(*sessions)
        code, job = place.plan(capsys)
        changes = [(one["what"], one["before"], one["now"], one["effect"]) for one in job["changes"]]
        assert changes == ([] if moved is None else [("driver", *moved, "restart")])
        assert (code, job["state"]) == (0, "unchanged" if moved is None else "goes on with its state")
