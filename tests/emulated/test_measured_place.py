"""What a measured job runs beside, with what its spec names."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import load
from penstock.scripts.profiling.measured_place import CHECKPOINTS, OUTPUT, MeasuredPlace

pytestmark = pytest.mark.emulated
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks
  parallelism: 2
  executor: {slots: 2, memory: 4g}
  sources:
    a: {kafka: {topic: clicks}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks, bucket: team-lake}}
"""


def test_the_bucket_that_a_sink_names_is_there(tmp_path: Path) -> None:
    file = tmp_path / "clicks.yaml"
    file.write_text(SPEC, encoding="utf-8")
    with MeasuredPlace(load(file), [tmp_path], tmp_path) as place:
        assert {bucket["Name"] for bucket in place.s3.list_buckets()["Buckets"]} == {CHECKPOINTS, OUTPUT, "team-lake"}
