"""What Spark's sessions can't change agrees with the pinned Spark version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.sizing.plan.session.settings import STATIC_SQL

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[4]


def test_the_settings_that_jobs_share_are_those_that_spark_calls_static() -> None:
    command = [sys.executable, "-m", "tests.sizing.plan.session.static_keys"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(STATIC_SQL) == json.loads(done.stdout)
