"""A driver that kills itself at a chosen point: ``python -m tests.chaos.doomed_driver``, with the arguments of `jobs.runtime`.

``PENSTOCK_TEST_DOOM`` is JSON: ``point`` (one of `POINTS`), ``call`` (at which of its calls, from 1) and ``sink`` (`CARELESS`, or nothing).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.client import BaseClient
from pyspark.sql import DataFrame

from jobs import runtime
from jobs.checkpoint import Checkpoint
from jobs.sinks.files import ROWS_A_TASK, Files, Manifest, _staged
from jobs.sinks.parts import STAGED_SCHEMA, PartWriter, wrapped

VARIABLE = "PENSTOCK_TEST_DOOM"
CARELESS = "careless"


@dataclass(frozen=True)
class Point:
    """A method's call, before or after which the driver dies; calls that `counts` refuses are not counted."""

    owner: type
    method: str
    after: bool = False
    counts: Callable[..., bool] = lambda *_: True


def _manifest(*arguments: Any) -> bool:
    """The checkpoint's identity is written once too."""
    return bool(arguments[1].startswith("sinks/"))


POINTS = {
    "before the manifest": Point(Checkpoint, "put_once", counts=_manifest),
    "after the manifest": Point(Checkpoint, "put_once", after=True, counts=_manifest),
    "between two completions": Point(Files, "_complete", after=True),
    "before the record": Point(Checkpoint, "record"),
    "after the record": Point(Checkpoint, "record", after=True),
    "before a call of S3": Point(BaseClient, "_make_api_call"),
    "after a call of S3": Point(BaseClient, "_make_api_call", after=True),
}


class Careless(Files):
    """A sink as one would write it without thinking of crashes: each try publishes files of its own, then notes that it has."""

    def _stage(self, lines: DataFrame, batch: int, count: int) -> Manifest:
        stem = f"{self.sink.prefix}{self._stem(batch)}-{uuid.uuid4().hex[:8]}"
        writer = PartWriter(self.bucket, self.sink.path, stem, f".{self.sink.format}", self.sink.roll.size)
        tasks = max(1, math.ceil(count / ROWS_A_TASK))
        parts = tuple(_staged(row.asDict()) for row in lines.coalesce(tasks).mapInArrow(writer, STAGED_SCHEMA).collect())
        self._publish(parts)
        rows, digest = sum(part.rows for part in parts), wrapped(sum(part.digest for part in parts))
        manifest = Manifest(batch=batch, rows=rows, digest=digest, parts=parts)
        self.checkpoint.put_once(self._manifest_name(batch), manifest.model_dump_json())
        return manifest


def main() -> int:
    """Arms the driver and runs it."""
    doom = json.loads(os.environ[VARIABLE])
    if doom.get("sink") == CARELESS:
        # By setattr, for the name is the runtime's own import.
        setattr(runtime, "Files", Careless)  # noqa: B010
    if "point" in doom:
        _arm(POINTS[doom["point"]], doom["call"])
    return runtime.main(sys.argv[1:])


def _arm(point: Point, call: int) -> None:
    original, calls = getattr(point.owner, point.method), itertools.count(1)

    def doomed(*arguments: Any, **named: Any) -> Any:
        last = point.counts(*arguments) and next(calls) == call
        if last and not point.after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **named)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(point.owner, point.method, doomed)


if __name__ == "__main__":
    sys.exit(main())
