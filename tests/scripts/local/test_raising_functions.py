"""Functions of a team's that raise during a local run: what they say, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.spec import load
from penstock.jobs.targets import targets
from penstock.scripts.errors import InputFailed
from penstock.scripts.local import input as local_input
from penstock.scripts.local.job import Job
from penstock.scripts.local.run import LocalRun
from penstock.sizing.plan import plan

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks_app
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources: {clicks: {kafka: {topic: clicks}}}
  sinks: {out: {files: {path: clicks}}}
  local:
    input: {clicks: "made_up:clicks"}
"""
GENERATOR = """\
def clicks():
    yield {"user": "ann"}
    yield {"user": "ann"[9]}
"""


def test_a_generator_that_raises_is_reported_with_its_place_and_that_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in {"clicks.yaml": SPEC, "made_up.py": GENERATOR, "clicks_app.py": "def build(job): pass\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    spec = load(tmp_path / "clicks.yaml")
    job = Job(spec, plan(targets(spec, [])), (tmp_path,), local_input.generators(spec, (tmp_path,)), None)
    nothing: Any = None
    with pytest.raises(InputFailed) as raised:
        LocalRun(job, nothing, nothing, tmp_path / "run", nothing).records()
    error = raised.value
    assert error.need == f"records; the generator raised IndexError: string index out of range, at {tmp_path}/made_up.py:3"
    assert str(error.at) == f"{tmp_path}/clicks.yaml:11"
