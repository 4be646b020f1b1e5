from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.document import parse_text
from penstock.jobs.spec import load
from penstock.jobs.spec.job_profile import parsed
from penstock.scripts.profiling.local_profile import Measurement, _long_enough, profile_of
from penstock.scripts.profiling.observed_driver import Observed
from penstock.sizing.load.observation import MicroBatch, SlotsRun
from penstock.sizing.load.spread import Spread
from tests.jobs.spec.measured_profiles import HERE

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec: {app: app, parallelism: 1, executor: {slots: 1, memory: 2g}, sources: {a: {kafka: {topic: a}}}}
"""


def test_a_measurement_is_a_profile_of_its_job_that_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC)
    batches = [MicroBatch(rows, 0.4 + rows / 10_000, rows / 8_000, 0.05) for rows in (30_000, 31_000, 29_000, 3_000, 2_900)]
    twice = [MicroBatch(batch.rows, 0.4 + batch.rows / 16_000, batch.cpu_s, 0.05) for batch in batches]
    measured = Measurement([SlotsRun(1, batches), SlotsRun(2, twice)], [18.0, 22.0], 1_234, [80.5, 81.5])
    profile = profile_of(load(path), [], measured, HERE, "2026-11-27")
    assert parsed(parse_text(profile.model_dump_json(by_alias=True), "clicks.profile.json")) == profile
    job = profile.measured
    assert job.events_per_slot_per_s.typical == pytest.approx(10_000, rel=0.01)
    assert job.events_per_cpu_s is not None and job.events_per_cpu_s.typical == pytest.approx(8_000, rel=0.01)
    assert job.batch_overhead_s is not None and job.batch_overhead_s.typical == pytest.approx(0.4, abs=0.01)
    assert (job.restart_s, job.restart_of_deployment) == (Spread(low=18, typical=20, high=22), False)
    assert job.bytes_per_key == Spread(low=80.5, typical=81, high=81.5)
    assert (profile.state_rows, [run.slots for run in profile.runs]) == (1_234, [1, 2])
    assert job.source == "local run of 2026-11-27 at 1, 2 slots"


def test_a_job_without_state_that_was_not_started_again_says_so(tmp_path: Path) -> None:
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC)
    job = profile_of(load(path), [], Measurement([SlotsRun(1, [MicroBatch(10, 1.0)])], [], None, []), None, "2026-11-27").measured
    assert (job.restart_s, job.bytes_per_key, job.machine, job.events_per_cpu_s) == (None, None, None, None)


def seen(*at_s: float) -> Observed:
    return Observed(batches=[(at, MicroBatch(10, 1.0)) for at in at_s])


@pytest.mark.parametrize(
    ("at_s", "done"),
    [
        ((), False),
        # Too soon, then enough micro-batches after the warm-up, the first not among them.
        ((0, 1, 2, 3, 4, 5), False),
        ((0, 1, 6, 7, 8, 9, 15), True),
        # Too few of them are waited for, but not without an end.
        ((0, 6, 16), False),
        ((0, 6, 55), True),
    ],
)
def test_a_slow_machine_is_waited_for_but_not_for_ever(at_s: tuple[float, ...], done: bool) -> None:
    assert _long_enough(seen(*at_s), 5.0, 4, (10.0, 50.0), lambda _: None) is done


def test_what_is_committed_first_and_while_it_warms_up_does_not_count() -> None:
    one = seen(0, 1, 5, 6)
    assert (one.elapsed_s, len(one.after(5.0)), len(one.after(0.0)), Observed().elapsed_s) == (6, 2, 3, 0)
