"""Spark's validation of values of its settings, as JSON: ``python -m tests.sizing.lint.spark_refusals``.

A separate process: once a session has been started, PySpark changes how errors of any JVM in the same process are read.
"""

from __future__ import annotations

import json

from penstock.scripts.dev import spark_keys
from penstock.sizing.lint import spark_keys as known

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
# A sample of each kind: a thousand booleans are all alike.
OF_EACH_KIND = 25


def refusals() -> dict[str, dict[str, str]]:
    """Setting -> value -> Spark's error, for all registered settings; without values beyond `OF_EACH_KIND`."""
    outcome: dict[str, dict[str, str]] = {}
    kinds: dict[str, int] = {}
    with spark_keys.registered() as entries:
        for key, entry in entries.items():
            setting = known.setting(key)
            kind = setting.kind.split()[0] if setting else "unknown"
            kinds[kind] = kinds.get(kind, 0) + 1
            result = setting is not None and kind != "text" and kinds[kind] <= OF_EACH_KIND
            outcome[key] = {value: spark_keys.refusal(entry, value) for value in _values(setting.kind)} if setting and result else {}
    return outcome


def _values(kind: str) -> list[str]:
    options = kind.partition(" ")[2].split("|")
    return list(dict.fromkeys([*VALUES, *options, *(option.swapcase() for option in options)]))


if __name__ == "__main__":
    print(json.dumps(refusals()))
