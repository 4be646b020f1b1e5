"""The metrics of a session's driver: Prometheus has them by job, though Spark spells the names of jobs and their parts alike."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.infra.manifests.prometheus import Monitoring, configuration
from penstock.infra.manifests.scraped_job import ScrapedJob
from penstock.infra.parts.observability import Alarms
from penstock.jobs.configuration.session import STOP
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.servers.local_server import free_port
from tests.infra.manifests.relabelled import Labels, by_job, kept
from tests.jobs.spark.running import Surroundings, TestedJob
from tests.jobs.spark.sessions import archived, running, session_job, without_spark
from tests.kube.evidence import wait_for

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The name of one begins as the other one's, and as the names of the other one's gauges of rows.
_JOBS = ("metered", "metered-rows")
_APP = """
def build(job):
    rows = job.source("a", "user STRING NOT NULL, at STRING NOT NULL")
    job.side_output("errors")
    job.write(rows.select(user="user"), "out")
    job.write(rows.select(user="user"), "further")
"""


def _with_another_sink(spec: dict[str, Any]) -> None:
    spec["sinks"]["further"] = {"files": {"path": f"{spec['sinks']['out']['files']['path']}-further"}}


def _job(around: Surroundings, name: str) -> TestedJob:
    return around.job("app_of_job", sources={"a": 1}, name=name, trigger="1s").edit(_with_another_sink)


# It starts a driver of its own, with a process for each job: longer than the tier spark has for it.
@pytest.mark.chaos
def test_each_job_of_a_session_has_its_own_series(aws: EmulatedAws, kafka: KafkaBroker, s3: S3Client, tmp_path: Path) -> None:
    around = without_spark(kafka, s3, tmp_path)
    jobs = {name: _job(around, name) for name in _JOBS}
    first = {name: session_job(job, archived(s3, name, app_of_job=_APP)) for name, job in jobs.items()}
    monitoring = Monitoring("test", "us-east-1", (ScrapedJob("small-jobs", "driver", False, 1000, _JOBS),), Alarms(), 4, None, {}, [])
    scrape = next(one for one in configuration(monitoring)["scrape_configs"] if one["job_name"] == "drivers")
    target = {**scrape["static_configs"][0]["labels"], "job": "drivers"}
    port = free_port()

    def series() -> dict[Labels, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{scrape['metrics_path']}", timeout=60) as answer:
            return kept(scrape, answer.read().decode(), target)

    with running(aws, tmp_path / "run", first, {"spark.ui.enabled": "true", "spark.ui.port": str(port)}) as session:
        for job in jobs.values():
            job.feed("a", {"user": "ann", "at": "2026-01-01T00:00:00Z"}, {"user": "bob", "at": "2026-01-01T00:00:00Z"})
        for name in _JOBS:
            while session.wait("committed", name).get("query") != f"{name}.further":
                pass
        found = series()
        assert by_job(found, "penstock_lag_records") == dict.fromkeys(_JOBS, 0.0)
        assert by_job(found, "penstock_reading") == dict.fromkeys(_JOBS, 1.0)
        assert set(by_job(found, "penstock_started_seconds")) == set(_JOBS)
        assert set(by_job(found, "penstock_event_time_watermark_milliseconds")) == set(_JOBS)
        assert by_job(found, "penstock_batch_rows", of=f"a_{_JOBS[0].replace('-', '_')}_a_0") == {_JOBS[0]: 2.0}
        for query in ("", "_further"):
            for name in _JOBS:
                assert list(by_job(found, "penstock_batch_milliseconds", query=f"{name.replace('-', '_')}{query}")) == [name]
        assert not [one for one in found if "penstock_job_" in dict(one)["__name__"]]

        # A job that is stopped has gauges, which nobody sets any more, and is seen not to read.
        session.ask(_JOBS[1], STOP)
        session.wait("stopped", _JOBS[1])
        wait_for(lambda: by_job(series(), "penstock_reading") == {_JOBS[0]: 1.0, _JOBS[1]: 0.0})

        # CloudWatch's metrics are by the job that an event names.
        assert {one["job"] for one in session.heard if one["event"] != "session"} == set(_JOBS)
