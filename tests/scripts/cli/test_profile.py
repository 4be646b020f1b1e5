"""``penstock profile`` as it is called, as far as it measures nothing, and ``penstock size`` with what it has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.scripts.cli.profile import with_machine
from penstock.scripts.profiling.errors import CalibrationMissing
from penstock.sizing.load.measured_job import CalibratedMachine
from penstock.sizing.load.spread import Spread
from tests.jobs.spec.measured_profiles import HERE, profile_of, written
from tests.scripts.cli.called import penstock

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  executor: {slots: 4}
  load: {eventsPerSecond: 200000, eventBytes: 240, eventsPerSlot: 5000}
  sources:
    a: {kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text("def build(job):\n    pass\n")
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize(
    ("words", "need"),
    [
        ((), "a SPEC, or --calibrate"),
        (("clicks.yaml", "--calibrate"), "a SPEC, or --calibrate"),
        (("clicks.yaml", "--into", "a.json"), "--into only together with --calibrate"),
        (("clicks.yaml", "--input", "a.jsonl", "--input", "b.jsonl"), "one file for each topic: TOPIC=FILE"),
        (("clicks.yaml", "--slots", "1,5000"), ""),
        (("clicks.yaml", "--slots", "0"), ""),
        (("clicks.yaml", "--seconds", "nan"), ""),
        (("clicks.yaml", "--from", "production", "--calibrate"), ""),
    ],
)
def test_words_that_say_nothing_together_are_wrong_usage(spec: Path, words: tuple[str, ...], need: str) -> None:
    done = penstock("profile", *words, cwd=spec.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[USE-001]" in done.stderr and need in done.stderr


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("{kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}", "{files: {path: in, format: json}}"), "PROF-004"),
        (("eventsPerSlot: 5000", "eventsPerSlot: no"), "SPEC-006"),
    ],
)
def test_a_job_that_cannot_be_measured_leaves_no_file(spec: Path, change: tuple[str, str], code: str) -> None:
    spec.write_text(SPEC.replace(*change))
    done = penstock("profile", "clicks.yaml", cwd=spec.parent)
    assert done.returncode == 2 and f"error[{code}]" in done.stderr
    assert sorted(one.name for one in spec.parent.iterdir()) == ["app.py", "clicks.yaml"]


def test_a_profile_replaces_what_the_load_assumes_and_size_says_which_of_both_it_is(spec: Path) -> None:
    path = written(profile_of(spec), spec.with_name("p.json"))
    assumed = penstock("size", "clicks.yaml", "--no-check", cwd=spec.parent)
    assert "no profile: assumed 5,000 events/s a slot" in assumed.stdout
    assert "\n  range " not in assumed.stdout
    measured = penstock("size", "clicks.yaml", "--no-check", "--profile", path.name, cwd=spec.parent)
    assert (measured.returncode, measured.stderr) == (0, "")
    text = " ".join(measured.stdout.split())
    assert "rate 10,000 events/s a slot, 8,000 to 12,000: local run of 2026-11-27 at 1, 2 slots, measured on a laptop with 2 cores" in text
    assert " executors, " in text.split(" range ")[1] and "USD a month, by the profile's spread" in text
    document = json.loads(penstock("size", "clicks.yaml", "--no-check", "--profile", path.name, "-o", "json", cwd=spec.parent).stdout)
    ends = document["range"]
    assert ends["low"]["executors"] < ends["typical"]["executors"] < ends["high"]["executors"]
    assert ends["low"]["usdPerMonth"]["low"] <= ends["high"]["usdPerMonth"]["high"]
    assert ends["typical"]["executors"] == document["totals"]["executors"]
    assert document["throughput"]["eventsPerSlotPerS"] == {"low": 8000.0, "typical": 10000.0, "high": 12000.0}


def test_a_profile_is_of_one_spec(spec: Path) -> None:
    done = penstock("size", "clicks.yaml", "clicks.yaml", "--profile", "p.json", cwd=spec.parent)
    assert done.returncode == 2 and "one SPEC: a profile is of one job" in done.stderr


def test_a_machine_is_added_once_and_only_to_a_profile_with_the_same_calibration(spec: Path) -> None:
    profile = profile_of(spec)
    slow, fast = (CalibratedMachine(name="m7g.large", cores=2, events_per_cpu_s=Spread.exactly(rate)) for rate in (40_000, 60_000))
    again = with_machine(with_machine(profile, slow), fast)
    assert again.measured.calibrated == (fast,)
    assert (again.measured.machine, again.job, again.digest) == (HERE, "clicks", profile.digest)
    with pytest.raises(CalibrationMissing):
        with_machine(profile_of(spec, machine=HERE.model_copy(update={"version": 9})), fast)
    with pytest.raises(CalibrationMissing):
        with_machine(profile_of(spec, machine=None), fast)


def test_a_profile_of_a_deployment_can_not_be_scaled(spec: Path) -> None:
    path = written(profile_of(spec, machine=None), spec.with_name("p.json"))
    before = path.read_bytes()
    done = penstock("profile", "--calibrate", "--into", path.name, cwd=spec.parent)
    assert done.returncode == 2 and "error[PROF-007]" in done.stderr
    assert path.read_bytes() == before


def test_a_profile_of_another_version_that_the_spec_names_is_planned_with_noted_and_found_by_lint(spec: Path) -> None:
    spec.write_text(SPEC.replace("eventsPerSlot: 5000", "profile: p.json"))
    written(profile_of(spec), spec.with_name("p.json"))
    before = penstock("lint", "clicks.yaml", "--no-check", cwd=spec.parent)
    assert "LINT-069" not in before.stdout
    spec.with_name("app.py").write_text("def build(job):\n    job.write(job.source('a'), 'out')\n")
    sized = penstock("size", "clicks.yaml", "--no-check", cwd=spec.parent)
    assert sized.returncode == 0
    note = "the profile p.json is of another version of the job: its app changed since 2026-11-27; measure it again"
    assert note in " ".join(sized.stdout.split())
    found = penstock("lint", "clicks.yaml", "--no-check", "-o", "json", cwd=spec.parent)
    (finding,) = [one for one in json.loads(found.stdout)["findings"] if one["rule"] == "LINT-069"]
    assert (finding["severity"], finding["given"], finding["line"]) == ("warning", "its app changed", 7)
