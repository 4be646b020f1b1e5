"""Sinks that can't stand beside each other, or lack what their own fields ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.spec import load
from sizing.errors import PenstockError


def _faults(folder: Path, **sinks: Any) -> list[tuple[str, str]]:
    spec = {"app": "jobs.apps.user_credit", "parallelism": 1, "executor": {"memory": "1g"}, "sinks": sinks}
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "a"}, "spec": spec}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    with pytest.raises(PenstockError) as raised:
        load(path)
    return [(fault.code, fault.path) for fault in raised.value.errors]


@pytest.mark.parametrize("other", ["clicks", "clicks/late"])
def test_two_file_sinks_need_folders_that_do_not_lie_in_each_other(tmp_path: Path, other: str) -> None:
    one, two = {"files": {"path": "clicks"}}, {"files": {"path": other}}
    assert _faults(tmp_path, one=one, two=two) == [("SPEC-008", "spec.sinks.two.files.path")]


def test_a_sink_that_writes_tombstones_needs_a_key(tmp_path: Path) -> None:
    assert _faults(tmp_path, out={"kafka": {"topic": "t", "deletes": True}}) == [("SPEC-008", "spec.sinks.out.kafka.deletes")]
