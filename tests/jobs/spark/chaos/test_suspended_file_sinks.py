"""A file sink whose driver is suspended before each of its requests, the ones that the tier spark leaves out included."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.jobs.spark.test_zombie_files import CASES, hold_it_harms_nothing

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.mark.parametrize(("format", "step"), CASES)
def test_a_driver_suspended_before_any_request_harms_nothing_when_it_wakes_after_another_has_gone_on(
    s3: S3Client, step: str, format: str
) -> None:
    hold_it_harms_nothing(s3, step, format, itertools.count(1))
