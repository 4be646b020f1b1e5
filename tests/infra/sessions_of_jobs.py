"""Environments with sessions of small jobs, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from tests.infra.environments import written

APP = """\
from penstock.jobs.job import Job

PARALLELISM = 4


def build(job: Job) -> None:
    job.source("in").to("out")
"""
# Holds the Python workers of several jobs.
EXECUTOR = {"slots": 4, "memory": "8g"}


def spec_of(name: str, folder: Path, **changes: Any) -> str:
    """A spec in a folder, with its app beside it; its path."""
    (folder / f"{name.replace('-', '_')}_app.py").write_text(APP, "utf-8")
    spec: dict[str, Any] = {
        "app": f"{name.replace('-', '_')}_app",
        "parallelism": 4,
        "executor": EXECUTOR,
        "sources": {"in": {"kafka": {"topic": f"{name}-in"}, "time": {"field": "at", "outOfOrderness": "10s"}}},
        "sinks": {
            "out": {"files": {"path": name}},
            "errors": {"kafka": {"topic": f"{name}-errors"}},
            "late": {"kafka": {"topic": f"{name}-late"}},
        },
        **changes,
    }
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": name}, "spec": spec}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return str(file)


def file_with(folder: Path, sessions: Sequence[dict[str, Any]], jobs: dict[str, dict[str, Any]] | None = None, **changes: Any) -> Path:
    """The production environment with these sessions, and jobs a, b and c in place of its own, or others.

    Args:
        folder: of all files.
        sessions: as in the environment's file.
        jobs: name -> changes of the spec.
        changes: of the environment's spec.
    """
    named = {"a": {}, "b": {}, "c": {}} if jobs is None else jobs
    specs = [spec_of(name, folder, **changed) for name, changed in named.items()]

    def change(spec: dict[str, Any]) -> None:
        spec.update({"jobs": specs, "sessions": list(sessions), "connections": {}, **changes})

    return written(folder, change)


def environment_with(
    folder: Path, sessions: Sequence[dict[str, Any]], jobs: dict[str, dict[str, Any]] | None = None, **changes: Any
) -> Environment:
    """As `file_with`, read."""
    return load(file_with(folder, sessions, jobs, **changes))
