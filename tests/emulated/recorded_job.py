"""A job whose checkpoint an earlier run has left: objects of a real one, in an environment of emulated AWS."""

from __future__ import annotations

import argparse
import json
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.scripts.cli import inspect
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.small_stacks import environment

RECORDING = Path(__file__).parents[1] / "jobs/spark/recordings/before-generations.tar.gz"
FOLDER = "every-state/checkpoints/1"
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: every-state}
spec:
  app: clicks
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources:
    a: {kafka: {topic: every-state-a}, time: {field: at, outOfOrderness: 10s}}
    b: {kafka: {pattern: "every-.*-b"}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: every-state}}
"""


def _recorded() -> dict[str, bytes]:
    """Object of the checkpoint -> content."""
    found = {}
    with tarfile.open(RECORDING) as tar:
        for member in tar:
            file, (_, _, key) = tar.extractfile(member), member.name.partition("/")
            if file is not None and key.startswith(f"{FOLDER}/"):
                found[key.removeprefix(f"{FOLDER}/")] = file.read()
    return found


RECORDED = _recorded()


class RecordedJob:
    """An environment with the recorded job, before it has run.

    Args:
        aws: where it is.
        folder: for its files.
    """

    def __init__(self, aws: EmulatedAws, folder: Path) -> None:
        (folder / "clicks.py").write_text("def build(job):\n    job.write(job.source('a', 'at STRING'), 'out')\n")
        (folder / "every-state.yaml").write_text(SPEC)
        data = environment(aws, f"in{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
        data["spec"]["jobs"] = [str(folder / "every-state.yaml")]
        own = Environment.model_validate(data)
        self.folder = folder
        self.s3 = AwsAccess(own).client("s3")
        self.bucket = own.spec.buckets.checkpoints
        self.s3.create_bucket(Bucket=self.bucket)
        self.file = folder / "environment.yaml"
        self.file.write_text(own.text())

    def restore(self, part: str = "") -> None:
        """The recorded checkpoint, or what is in a part of it, without Spark's checksums."""
        for name, content in RECORDED.items():
            if name.startswith(part) and not name.endswith(".crc"):
                self.put(name, content)

    def put(self, name: str, content: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=f"{FOLDER}/{name}", Body=content)

    @contextmanager
    def damaged(self, name: str, content: bytes | None) -> Iterator[None]:
        """With another content of an object, or without all that begin with this name."""
        if content is None:
            for gone in [one for one in RECORDED if one.startswith(name)]:
                self.s3.delete_object(Bucket=self.bucket, Key=f"{FOLDER}/{gone}")
        else:
            self.put(name, content)
        yield
        self.restore(name)

    def inspect(self, *words: str) -> int:
        parser = argparse.ArgumentParser()
        inspect.add_arguments(parser)
        return inspect.run(parser.parse_args([str(self.file), "--job", "every-state", *words]))

    def json(self, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
        code = self.inspect("-o", "json", *words)
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document
