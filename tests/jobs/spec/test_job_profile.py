"""Profiles of `penstock profile` in the load of a spec, and in place of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.jobs.spec import load
from penstock.jobs.targets import targets
from penstock.sizing.errors import PenstockError
from penstock.sizing.load.measured_job import POD_START_S, CalibratedMachine
from penstock.sizing.load.spread import Spread
from penstock.sizing.plan import plan
from tests.jobs.spec.measured_profiles import HERE, profile_of, written

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  executor: {slots: 4}
  load:
    eventsPerSecond: 100000
    eventBytes: 240
    profile: clicks.profile.json
    state: {keys: 100000}
  sources:
    a: {kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A job whose spec names its profile."""
    (tmp_path / "app.py").write_text("def build(job):\n    pass\n")
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC)
    return path


def fault(spec: Path, profile: Path | None = None) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        targets(load(spec), profile=profile)
    return caught.value.errors[0]


def test_the_load_is_planned_with_what_was_measured(spec: Path) -> None:
    written(profile_of(spec), spec.with_name("clicks.profile.json"))
    found = targets(load(spec)).load
    assert found is not None
    # A slot has a core, which computes less than the slot was measured with.
    assert found.slot_rate == Spread(low=8_000, typical=10_000, high=12_000)
    assert (found.batch_overhead_s, found.restart_s, found.bytes_per_key) == (0.4, 20 + POD_START_S, 121)
    assert found.measured is not None
    assert targets(load(spec)).notes == ()


def test_what_the_spec_says_itself_is_not_replaced(spec: Path) -> None:
    own = "profile: clicks.profile.json\n    restart: 7m\n    batchOverhead: 1s"
    spec.write_text(SPEC.replace("profile: clicks.profile.json", own).replace("keys: 100000}", "keys: 100000, bytesPerKey: 50}"))
    written(profile_of(spec), spec.with_name("clicks.profile.json"))
    found = targets(load(spec)).load
    assert found is not None
    assert (found.batch_overhead_s, found.restart_s, found.bytes_per_key) == (1.0, 420.0, 50)


def test_the_cores_of_a_slot_limit_it(spec: Path) -> None:
    spec.write_text(SPEC.replace("{slots: 4}", "{slots: 4, cores: 2}"))
    written(profile_of(spec), spec.with_name("clicks.profile.json"))
    found = targets(load(spec)).load
    assert found is not None and found.slot_rate is not None
    assert found.slot_rate.typical == 5_000


def test_another_load_another_size_and_another_trigger_leave_the_profile_valid_and_another_app_does_not(spec: Path) -> None:
    written(profile_of(spec), spec.with_name("clicks.profile.json"))
    other = SPEC.replace("100000\n", "300000\n").replace("{slots: 4}", "{slots: 2}").replace("  sources:", "  trigger: 3s\n  sources:")
    spec.write_text(other)
    assert targets(load(spec)).notes == ()
    assert targets(load(spec), profile=spec.with_name("clicks.profile.json")).notes == ()
    spec.with_name("app.py").write_text("def build(job):\n    job.write(job.source('a'), 'out')\n")
    (note,) = targets(load(spec)).notes
    assert note == "the profile clicks.profile.json is of another version of the job: its app changed since 2026-11-27; measure it again"
    # What is named on the command line is to be of the job as it is.
    found = fault(spec, spec.with_name("clicks.profile.json"))
    assert (found.code, found.need) == ("PROF-003", "a profile of the job as it is: its app changed since 2026-11-27")


def test_another_source_makes_another_job_of_it(spec: Path) -> None:
    path = written(profile_of(spec), spec.with_name("clicks.profile.json"))
    spec.write_text(SPEC.replace("topic: a}", "topic: a, value: text}").replace(", time: {field: at, outOfOrderness: 10s}", ""))
    assert fault(spec, path).code == "PROF-003"
    assert "its spec changed" in fault(spec, path).need


def test_a_profile_of_another_job_is_an_error_with_its_line(spec: Path) -> None:
    other = profile_of(spec).model_copy(update={"job": "views"})
    written(other, spec.with_name("clicks.profile.json"))
    found = fault(spec)
    assert (found.code, found.path, found.given) == ("PROF-002", "job", '"views"')
    assert found.at is not None and found.at.file.endswith("clicks.profile.json") and found.at.line == 4


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "SPEC-002"),
        ("[]", "PROF-001"),
        ('{"kind": "StreamingJob"}', "PROF-001"),
        ('{"kind": "JobProfile", "apiVersion": "penstock/v9"}', "PROF-001"),
        ('{"kind": "JobProfile", "apiVersion": "penstock/v1"}', "SPEC-005"),
        ('{"points": [{"slots": 1, "eventsPerSecond": 5}]}', "PROF-001"),
    ],
)
def test_a_broken_or_foreign_profile_is_an_error(spec: Path, text: str, code: str) -> None:
    path = spec.with_name("given.json")
    path.write_text(text)
    assert fault(spec, path).code == code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"eventsPerSlotPerS": {"low": 3, "typical": 2, "high": 4}}, "SPEC-006"),
        ({"eventsPerSlotPerS": {"low": 0, "typical": 0, "high": 0}}, "SPEC-006"),
        ({"eventsPerSlotPerS": {"low": "a", "typical": 1, "high": 1}}, "SPEC-006"),
        ({"unknown": 1}, "SPEC-004"),
        (
            {"machine": None, "calibrated": [{"name": "m7g.large", "cores": 2, "eventsPerCpuS": {"low": 1, "typical": 1, "high": 1}}]},
            "SPEC-006",
        ),
    ],
)
def test_impossible_numbers_are_errors(spec: Path, change: dict[str, object], code: str) -> None:
    document = json.loads(profile_of(spec).model_dump_json(by_alias=True))
    document["measured"] |= change
    path = spec.with_name("given.json")
    path.write_text(json.dumps(document))
    assert fault(spec, path).code == code


def test_a_state_without_bytes_needs_a_profile_that_has_them(spec: Path) -> None:
    written(profile_of(spec, bytes_per_key=None), spec.with_name("clicks.profile.json"))
    found = fault(spec)
    assert (found.code, found.path) == ("SPEC-005", "spec.load.state.bytesPerKey")


def test_a_profile_needs_a_load(spec: Path) -> None:
    path = written(profile_of(spec), spec.with_name("clicks.profile.json"))
    text = (
        SPEC.split("  load:")[0].replace("{slots: 4}", "{slots: 4, memory: 4g}")
        + "  parallelism: 4\n  sources:"
        + SPEC.split("  sources:")[1]
    )
    spec.write_text(text)
    assert (fault(spec, path).code, fault(spec, path).path) == ("SPEC-005", "spec.load")


def test_the_spread_is_a_range_of_plans_and_a_faster_machine_needs_fewer_executors(spec: Path) -> None:
    path = spec.with_name("clicks.profile.json")
    written(profile_of(spec), path)
    here = plan(targets(load(spec)))
    assert here.range is not None and here.throughput is not None
    ends = here.range
    assert ends.low.executors <= ends.typical.executors == here.totals.executors <= ends.high.executors
    assert ends.low.executors < ends.high.executors
    assert (here.throughput.basis, here.throughput.events_per_slot_per_s) == ("measured", Spread(low=8_000, typical=10_000, high=12_000))
    twice = CalibratedMachine(name="m7g.large", cores=2, events_per_cpu_s=Spread.exactly(100_000))
    written(profile_of(spec, machine=HERE, calibrated=(twice,)), path)
    there = plan(targets(load(spec)))
    assert there.parallelism.value == pytest.approx(here.parallelism.value / 2, abs=1)
    assert there.throughput is not None and "scaled to m7g.large by calibration" in there.throughput.basis_text


def test_a_profile_without_spread_has_no_range_and_neither_have_assumptions(spec: Path) -> None:
    exact = Spread.exactly(10_000)
    written(profile_of(spec, events_per_slot_per_s=exact, events_per_cpu_s=None), spec.with_name("clicks.profile.json"))
    assert plan(targets(load(spec))).range is None
    spec.write_text(
        SPEC.replace("profile: clicks.profile.json", "eventsPerSlot: 10000").replace("keys: 100000}", "keys: 1, bytesPerKey: 9}")
    )
    assumed = plan(targets(load(spec)))
    assert assumed.range is None and assumed.throughput is not None
    assert assumed.throughput.basis_text == "no profile: assumed 10,000 events/s a slot"
