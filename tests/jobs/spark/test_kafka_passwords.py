"""A job whose brokers ask for credentials: every client of the driver and of the tasks, and where password and key are not."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from pyspark.sql import SparkSession

from penstock.jobs.configuration.kafka_access import KafkaAccess, Security
from penstock.jobs.kafka.errors import KafkaCredentialsRefused
from penstock.scripts.local import kafka_topics, recorded_run
from tests.emulated.secured_broker import PASSWORD, USER, SecuredBroker
from tests.jobs.spark.group_offsets import committed
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    secured = SecuredBroker(tmp_path_factory.mktemp("secured"))
    with secured:
        secured.add_user()
        yield secured


@pytest.fixture
def around(surroundings: Surroundings, broker: SecuredBroker) -> Surroundings:
    """The test itself reaches the broker where it asks for nothing."""
    return replace(surroundings, brokers=broker.address)


def _access(broker: SecuredBroker, security: Security, password: str) -> KafkaAccess:
    text = json.dumps({"username": USER, "password": password})
    secret = str(boto3.client("secretsmanager").create_secret(Name=uuid.uuid4().hex, SecretString=text)["ARN"])
    address = broker.scram if security == "sasl-scram" else broker.password
    return KafkaAccess(address, security, None, str(broker.ca_file), secret)


def _job(around: Surroundings, access: KafkaAccess, guarantee: str) -> TestedJob:
    """Reads a topic, commits its offsets, and writes topics."""
    job = replace(around.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1}), kafka=access)
    kafka_topics.create(around.brokers, {f"{job.name}-out": 1})
    to_topic = {"kafka": {"topic": f"{job.name}-out", "guarantee": guarantee}}
    kafka = {"commitOffsets": True, "startingOffsets": "committed-or-earliest"}
    return job.edit(lambda spec: (spec["sinks"].update(out=to_topic), spec["sources"]["a"]["kafka"].update(kafka)))


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_job_reads_commits_and_writes_with_a_certificate_and_trusts_a_private_ca(
    around: Surroundings, broker: SecuredBroker, tmp_path: Path, guarantee: str
) -> None:
    chain, key = broker.root.client()
    text = json.dumps({"certificate": chain, "key": key})
    secret = str(boto3.client("secretsmanager").create_secret(Name=uuid.uuid4().hex, SecretString=text)["ARN"])
    job = _job(around, KafkaAccess(broker.mutual, "mtls", None, None, secret, ca=broker.root.pem), guarantee)
    job.feed("a", {"key": "k", "at": "2025-04-05T12:30:00Z", "name": "one"})
    with _logging(around.session, tmp_path / "spark.log"), job.running() as running:
        running.until_read({"a": [1]})
        plans = _plans(around.session)
    assert [row["name"] for row in recorded_run.topic_rows(around.brokers, f"{job.name}-out")] == ["one"]
    assert committed(around.brokers, f"penstock.{job.name}", [(job.topics["a"], 0)]) == [1]
    logged = (tmp_path / "spark.log").read_text(encoding="utf-8")
    assert "ssl.keystore.key = [hidden]" in logged and "kafka" in plans.lower(), "this would find nothing"
    # A line of the key, however it is quoted.
    line = key.splitlines()[1]
    for where in (logged, plans, job.spec.read_text(encoding="utf-8"), *_objects(around.s3, job.name)):
        assert line not in where


@pytest.mark.parametrize(("security", "guarantee"), [("sasl-scram", "exactly-once"), ("sasl-plain", "at-least-once")])
def test_a_job_reads_commits_and_writes_with_user_and_password(
    around: Surroundings, broker: SecuredBroker, tmp_path: Path, security: Security, guarantee: str
) -> None:
    job = _job(around, _access(broker, security, PASSWORD), guarantee)
    job.feed("a", {"key": "k", "at": "2025-04-05T12:30:00Z", "name": "one"}, b"not JSON")
    with _logging(around.session, tmp_path / "spark.log"), job.running() as running:
        running.until_read({"a": [2]})
        plans = _plans(around.session)
    assert [row["name"] for row in recorded_run.topic_rows(around.brokers, f"{job.name}-out")] == ["one"]
    assert [bad["offset"] for bad in job.side_outputs("errors")] == [1]
    assert committed(around.brokers, f"penstock.{job.name}", [(job.topics["a"], 0)]) == [2]
    logged = (tmp_path / "spark.log").read_text(encoding="utf-8")
    assert "sasl.jaas.config = [hidden]" in logged and "kafka" in plans.lower(), "this would find nothing"
    # Quoted, it appears in another form.
    for secret in (PASSWORD, json.dumps(PASSWORD)[1:-1], PASSWORD.partition("; ")[2], USER):
        for where in (logged, plans, job.spec.read_text(encoding="utf-8"), *_objects(around.s3, job.name)):
            assert secret not in where


def test_a_wrong_password_ends_the_driver_before_spark_starts(
    around: Surroundings, broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.jobs.kafka.brokers.TIMEOUT_S", 3.0)
    job = _job(around, _access(broker, "sasl-scram", "mistyped"), "at-least-once")
    with pytest.raises(KafkaCredentialsRefused) as refused, job.running():
        pass
    assert "mistyped" not in refused.value.render() and refused.value.code == "JOB-111"


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_job_that_only_writes_topics_says_so_too(
    around: Surroundings, broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    for module in ("topics", "exactly_once_topics", "transactions"):
        monkeypatch.setattr(f"penstock.jobs.sinks.{module}.CALL_S", 3.0)
    job = _job(around, _access(broker, "sasl-plain", "mistyped"), guarantee)
    around.s3.put_object(Bucket=OUTPUT, Key=f"in/{job.name}/one.jsonl", Body=b"{}")
    job.edit(lambda spec: spec.update(sources={"a": {"files": {"path": f"in/{job.name}"}, "time": {"field": "at"}}}))
    with pytest.raises(KafkaCredentialsRefused), job.running():
        pass


@contextmanager
def _logging(session: SparkSession, file: Path) -> Iterator[None]:
    """Has all that Spark logs from INFO on in a file as well: the JVM's standard error is whoever's that has started it."""
    jvm: Any = session.sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    appender = log4j.core.appender.FileAppender.newBuilder().setName(file.name).setLayout(layout).withFileName(str(file)).build()
    appender.start()
    root.addAppender(appender, None, None)
    session.sparkContext.setLogLevel("INFO")
    try:
        yield
    finally:
        session.sparkContext.setLogLevel("ERROR")
        root.removeAppender(file.name)
        appender.stop()


def _plans(session: SparkSession) -> str:
    """The descriptions of all plans that Spark has executed, as its UI and its event log have them."""
    internal: Any = session._jsparkSession
    executions = internal.sharedState().statusStore().executionsList()
    return "\n".join(executions.apply(number).physicalPlanDescription() for number in range(executions.size()))


def _objects(s3: S3Client, job: str) -> Iterator[str]:
    """What the job has in its folder."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=CHECKPOINTS, Prefix=f"{job}/"):
        for item in page.get("Contents", []):
            yield s3.get_object(Bucket=CHECKPOINTS, Key=item["Key"])["Body"].read().decode("utf-8", "replace")
