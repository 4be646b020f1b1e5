"""Random searches at length; the tier fast runs a fixed sample of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.scripts.cli.test_lint import ANYTHING_ANYWHERE, linted_with


@pytest.mark.timeout(3_600)
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@ANYTHING_ANYWHERE
def test_a_manifest_with_anything_anywhere_is_never_a_traceback(tmp_path: Path, which: int, path: list[int], value: Any) -> None:
    assert linted_with(tmp_path, which, path, value) in (0, 1, 2)
