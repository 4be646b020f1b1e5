"""The fixture ``local_environment`` of the test kit: real services, for a team's own tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from penstock.testing import LocalServices
from penstock.testing.plugin import local_environment

__all__ = ["local_environment"]

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: names}
spec:
  app: names
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources: {names: {kafka: {topic: names}}}
  sinks: {cache: {redis: {connection: cache, key: [id]}}}
  local: {connections: {cache: {redis: "names:rows"}}}
"""
FILL = "def rows():\n    return {'names:1': {'name': 'ann'}}\n"
ASKS = """\
import boto3, json, os
names = [bucket["Name"] for bucket in boto3.client("s3").list_buckets()["Buckets"]]
print(json.dumps([names, os.environ["KAFKA_BOOTSTRAP_SERVERS"]]))
"""


def test_records_are_read_as_they_were_written(local_environment: LocalServices) -> None:
    local_environment.write("kit", {"id": 1}, "text", None, partitions=1)
    local_environment.write("kit", b"\x00")
    assert local_environment.read("kit") == [b'{"id": 1}', b"text", None, b"\x00"]


def test_the_buckets_are_there_and_other_programs_reach_them(local_environment: LocalServices) -> None:
    s3 = local_environment.client("s3")
    s3.put_object(Bucket=local_environment.output, Key="one", Body=b"1")
    assert s3.get_object(Bucket=local_environment.output, Key="one")["Body"].read() == b"1"
    own = local_environment.variables
    ran = subprocess.run([sys.executable, "-c", ASKS], env=own, capture_output=True, text=True, check=True, timeout=60)
    names, brokers = json.loads(ran.stdout)
    assert {local_environment.checkpoints, local_environment.output} <= set(names)
    assert brokers == local_environment.brokers


def test_the_databases_of_a_job_are_started_and_filled(local_environment: LocalServices, tmp_path: Path) -> None:
    import redis

    (tmp_path / "names.yaml").write_text(SPEC)
    (tmp_path / "names.py").write_text(FILL)
    urls = local_environment.connections(tmp_path / "names.yaml")
    assert list(urls) == ["cache"]
    with redis.from_url(urls["cache"], decode_responses=True) as client:
        assert client.hgetall("names:1") == {"name": "ann"}
