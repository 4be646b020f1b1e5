"""A micro-batch cut off at each point of its way, the ones that the tier spark leaves out included."""

from __future__ import annotations

import pytest

from tests.jobs.spark.killed import POINTS
from tests.jobs.spark.running import Surroundings
from tests.jobs.spark.test_restarts import hold_it_is_there_once


@pytest.mark.parametrize("point", POINTS)
def test_a_micro_batch_interrupted_at_any_point_is_written_once_after_the_restart(surroundings: Surroundings, point: str) -> None:
    hold_it_is_there_once(surroundings, point)
