"""The end of a session whose Spark dies: all its jobs end with it, at once, so that its pod starts anew."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.sessions import archived, children, running, session_job, without_spark
from tests.kube.evidence import wait_for

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_JOBS = ("ending-one", "ending-two")
_APP = """
def build(job):
    job.side_output("errors")
    job.write(job.source("a", "user STRING NOT NULL, at STRING NOT NULL").select(user="user"), "out")
"""


def _jvm(pid: int) -> int:
    """The JVM of a process."""
    (jvm,) = [child for child in children(pid) if Path(f"/proc/{child}/comm").read_text("ascii") == "java\n"]
    return jvm


# It starts a driver of its own, with a process for each job: longer than the tier spark has for it.
@pytest.mark.chaos
def test_a_session_whose_jvm_dies_ends_with_its_jobs(aws: EmulatedAws, kafka: KafkaBroker, s3: S3Client, tmp_path: Path) -> None:
    around = without_spark(kafka, s3, tmp_path)
    jobs = {name: around.job("app_of_job", sources={"a": 1}, name=name, trigger="1s") for name in _JOBS}
    first = {name: session_job(job, archived(s3, name, app_of_job=_APP)) for name, job in jobs.items()}
    with running(aws, tmp_path / "run", first, code=5) as session:
        for name, job in jobs.items():
            job.feed("a", {"user": "ann", "at": "2026-01-01T00:00:00Z"})
            session.wait("committed", name)
        wait_for(lambda: session.ready)
        jvm = _jvm(session.process.pid)
        processes = {*children(session.process.pid)} - {jvm}
        assert len(processes) >= len(_JOBS)
        os.kill(jvm, signal.SIGKILL)
        session.process.wait(100)
        assert "JOB-114" in session.log
        assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []
