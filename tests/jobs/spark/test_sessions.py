"""Several jobs in one driver: each is changed, fails and is stopped for itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.jobs.configuration.session import STOP
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.running import Surroundings, TestedJob
from tests.jobs.spark.sessions import RunningSession, archived, running, session_job, without_spark

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# A Python function runs in the workers, which need the module; a filter takes rows out natively, and counts them.
_APP = """
from pyspark.sql import functions as F
from helper_of_app import marked

def build(job):
    rows = job.source("a", "user STRING NOT NULL, at STRING NOT NULL, n INT")
    job.side_output("errors")
    kept = rows.filter("n >= 0")
    job.write(kept.select(user=F.udf(marked)("user"), n="n"), "out")
"""


def _helper(mark: str) -> str:
    return f"def marked(user):\n    return '{mark}' + user\n"


def _job(around: Surroundings, name: str) -> TestedJob:
    return around.job("app_of_job", sources={"a": 1}, name=name, trigger="1s")


def _row(user: str, n: int) -> dict[str, object]:
    return {"user": user, "at": "2026-01-01T00:00:00Z", "n": n}


def _wait_for(session: RunningSession, job: TestedJob, *users: str) -> None:
    """Waits until the output has exactly these rows; it never has others."""
    while (found := [row["user"] for row in job.rows()]) != list(users):
        assert set(found) < set(users), session.log
        session.wait("committed", job.name)


def test_a_changed_app_and_a_failure_leave_the_other_jobs_alone(aws: EmulatedAws, kafka: KafkaBroker, s3: S3Client, tmp_path: Path) -> None:
    around = without_spark(kafka, s3, tmp_path)
    one, two = _job(around, "session-one"), _job(around, "session-two")
    first = {job.name: session_job(job, archived(s3, job.name, app_of_job=_APP, helper_of_app=_helper("a-"))) for job in (one, two)}
    with running(aws, tmp_path / "run", first) as session:
        for job in (one, two):
            job.feed("a", _row("ann", 1), _row("bob", -1))
        for job in (one, two):
            _wait_for(session, job, "a-ann")

        # Another app of one of them: it goes on from its checkpoint, with the module's new text in the workers too.
        changed = session_job(one, archived(s3, one.name, app_of_job=_APP, helper_of_app=_helper("b-")))
        session.change({**first, one.name: changed})
        session.wait("stopped", one.name)
        one.feed("a", _row("cid", 2))
        two.feed("a", _row("dan", 2))
        _wait_for(session, one, "a-ann", "b-cid")
        _wait_for(session, two, "a-ann", "a-dan")
        assert (session.count("starting", one.name), session.count("starting", two.name)) == (2, 1)

        # An app that fails: the other job goes on, and so does this one once it is mended.
        broken = session_job(one, archived(s3, one.name, app_of_job=_APP, helper_of_app="def marked(user):\n    return user[99]\n"))
        session.change({**first, one.name: broken})
        session.wait("stopped", one.name)
        one.feed("a", _row("eve", 3))
        session.wait("failed", one.name)
        session.wait_for_line(one.name, "IndexError")
        two.feed("a", _row("fay", 3))
        _wait_for(session, two, "a-ann", "a-dan", "a-fay")
        session.change({**first, one.name: changed})
        _wait_for(session, one, "a-ann", "b-cid", "b-eve")

        # It is stopped by itself, and goes on where it was.
        session.ask(one.name, STOP)
        session.wait("stopped", one.name)
        for job in (one, two):
            job.feed("a", _row("gil", 4))
        _wait_for(session, two, "a-ann", "a-dan", "a-fay", "a-gil")
        session.ask(one.name, "run, asked after a stop")
        _wait_for(session, one, "a-ann", "b-cid", "b-eve", "b-gil")
        assert session.count("starting", two.name) == 1
