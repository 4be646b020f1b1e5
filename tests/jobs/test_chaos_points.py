"""The points at which the tier chaos kills drivers and executors exist: a job would never come to one that was renamed."""

from __future__ import annotations

import importlib
from operator import attrgetter

import pytest

from tests.chaos import doomed_driver, doomed_executor


@pytest.mark.parametrize("point", doomed_driver.POINTS)
def test_a_point_of_a_driver_is_a_method(point: str) -> None:
    method = doomed_driver.POINTS[point]
    assert callable(getattr(method.owner, method.method))


@pytest.mark.parametrize("point", doomed_executor.POINTS)
def test_a_point_of_an_executor_is_a_call_in_its_workers(point: str) -> None:
    call = doomed_executor.POINTS[point]
    assert callable(attrgetter(call.name)(importlib.import_module(call.module)))
