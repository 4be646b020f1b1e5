"""Every kind of window against plain Python, however the micro-batches fall."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.jobs.spark.plain_windows import TIME_WINDOWS, TRIGGERED, Build, hold_what_plain_python_puts_in_them
from tests.jobs.spark.running import Surroundings


@pytest.mark.parametrize("parts", [2, 1])
@pytest.mark.parametrize("blocks", [TIME_WINDOWS, TRIGGERED], ids=["time", "triggered"])
def test_windows_hold_what_plain_python_puts_in_them_however_the_micro_batches_fall(
    surroundings: Surroundings, blocks: Mapping[str, Build], parts: int
) -> None:
    hold_what_plain_python_puts_in_them(surroundings, blocks, parts)
