"""The file of Spark's settings is what the jars of the pinned Spark say, and what lint says of a value is what they do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts import spark_keys
from sizing.lint import spark_keys as known

pytestmark = pytest.mark.spark
FILE = Path(known.__file__).parents[1] / "data" / f"spark-{known.SPARK_VERSION}-keys.txt"
VALUES = (
    "true",
    "False",
    " true ",
    "yes",
    "1",
    "-1",
    "+7",
    "1.5",
    "1e3",
    ".5",
    "1d",
    "3000000000",
    "2g",
    "2GB",
    "2gib",
    "1.5g",
    "10 s",
    "10s",
    "5min",
    "3d",
    "2us",
    "NaN",
    "",
)


@pytest.fixture(scope="module")
def entries() -> Iterator[dict[str, Any]]:
    with spark_keys.registered() as found:
        yield found


def test_the_file_is_that_of_the_jars() -> None:
    assert FILE.read_text("utf-8") == spark_keys.rendered(), (
        "write it again: python -m scripts.spark_keys > sizing/data/spark-4.3.0-keys.txt"
    )


def test_what_lint_says_of_a_value_spark_says_too(entries: dict[str, Any]) -> None:
    wrong: list[str] = []
    kinds: dict[str, int] = {}
    for key, entry in entries.items():
        setting = known.setting(key)
        assert setting is not None, key
        kind = setting.kind.split()[0]
        # Some of each kind: a thousand booleans are all alike.
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= 25 and kind != "text":
            options = setting.kind.partition(" ")[2].split("|")
            for value in (*VALUES, *options, *(option.swapcase() for option in options)):
                refusal = spark_keys.refusal(entry, value)
                refuses = "should be a/an" in refusal or "should be one of" in refusal
                if refuses != bool(known.expected(setting, value)):
                    wrong.append(f"{key} ({setting.kind}) = {value!r}: {refusal}")
    assert wrong == []
    assert set(kinds) >= {"boolean", "int", "long", "double", "bytes", "time", "options", "Options", "text"}
