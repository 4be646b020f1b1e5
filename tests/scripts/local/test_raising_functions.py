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
    yield {"user": letter()}

def letter():
    return "ann"[9]
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
    assert error.need == f"records; the generator raised IndexError: string index out of range, at {tmp_path}/made_up.py:6"
    assert str(error.at) == f"{tmp_path}/clicks.yaml:11"
    # Where the run's other logs are, with each call of the team's own.
    log = (tmp_path / "run-functions.log").read_text(encoding="utf-8")
    assert f'"{tmp_path}/made_up.py", line 3, in clicks' in log
    assert f'"{tmp_path}/made_up.py", line 6, in letter' in log
    assert log.endswith("IndexError: string index out of range\n")
    assert error.fix == "correct the generator; the log has its traceback"


def test_a_generators_module_that_cannot_be_imported_is_reported_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = "import json\nRATE = 1 // 0\ndef clicks(): yield {}\n"
    for name, text in {"clicks.yaml": SPEC.replace("made_up", "broken_input"), "broken_input.py": module}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputFailed) as raised:
        local_input.generators(load(tmp_path / "clicks.yaml"), (tmp_path,))
    assert raised.value.need.endswith(f"; ZeroDivisionError: integer division or modulo by zero, at {tmp_path}/broken_input.py:2")
