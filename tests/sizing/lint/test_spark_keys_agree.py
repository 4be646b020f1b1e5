"""The file of Spark's settings agrees with the jars of the pinned Spark version, and so does lint's validation of values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.sizing.lint import spark_keys as known

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[3]
FILE = Path(known.__file__).parents[1] / "data" / f"spark-{known.SPARK_VERSION}-keys.txt"


def _said(module: str) -> str:
    done = subprocess.run([sys.executable, "-m", module], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_is_that_of_the_jars() -> None:
    assert FILE.read_text("utf-8") == _said("penstock.scripts.dev.spark_keys"), (
        "write it again: python -m penstock.scripts.dev.spark_keys > sizing/data/spark-4.3.0-keys.txt"
    )


def test_what_lint_says_of_a_value_spark_says_too() -> None:
    wrong: list[str] = []
    kinds: set[str] = set()
    for key, by_value in json.loads(_said("tests.sizing.lint.spark_refusals")).items():
        setting = known.setting(key)
        assert setting is not None, key
        kinds.add(setting.kind.split()[0])
        for value, refusal in by_value.items():
            refuses = "should be a/an" in refusal or "should be one of" in refusal
            if refuses != bool(known.expected(setting, value)):
                wrong.append(f"{key} ({setting.kind}) = {value!r}: {refusal}")
    assert wrong == []
    assert kinds >= {"boolean", "int", "long", "double", "bytes", "time", "options", "Options", "text"}
