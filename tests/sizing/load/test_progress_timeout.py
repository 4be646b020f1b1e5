"""How long a job may show no progress, by its trigger, its state and its planned restart."""

from __future__ import annotations

import pytest

from penstock.sizing.load.progress_timeout import progress_timeout_s


@pytest.mark.parametrize(
    ("trigger_s", "restart_s", "state_bytes", "limit_s"),
    [
        (10.0, 300.0, 0, 600),
        (None, 0.0, 0, 600),
        (3600.0, 300.0, 0, 10_800),
        (10.0, 1800.0, 0, 1800),
        # 8 connections of 85 MB/s read 680 GB in 1000 s.
        (10.0, 300.0, 680_000_000_000, 3000),
    ],
)
def test_the_default_is_ten_minutes_or_what_the_job_is_planned_to_take(
    trigger_s: float | None, restart_s: float, state_bytes: int, limit_s: float
) -> None:
    planned = progress_timeout_s(None, trigger_s=trigger_s, restart_s=restart_s, state_bytes=state_bytes, tasks_at_a_time=8)
    assert planned == pytest.approx(limit_s)


def test_what_the_spec_asks_for_is_taken_as_it_is() -> None:
    assert progress_timeout_s(30.0, trigger_s=10.0, restart_s=300.0, state_bytes=10**13, tasks_at_a_time=8) == 30.0
