"""Clients that a real broker lets in by their certificate, and that trust it by a private CA; and those that are not let in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from penstock.jobs.configuration.kafka_access import ClientCertificate, KafkaAccess
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.kafka.client_certificate import client_certificate
from penstock.jobs.kafka.errors import KafkaCredentialsRefused
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import kafka_topics
from penstock.scripts.topics.brokers import TopicBrokers
from tests.emulated.secured_broker import Root, SecuredBroker
from tests.emulated.test_kafka_security import EXPECTED, JOB, _asked_in_java, _partitions
from tests.infra.environments import written

ARN = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    secured = SecuredBroker(tmp_path_factory.mktemp("kafka"))
    with secured:
        kafka_topics.create(secured.address, {"events": 3})
        yield secured


def _access(broker: SecuredBroker, chain: str, key: str) -> KafkaAccess:
    known = client_certificate(chain, key, secret=ARN, path="spec.kafka.secret")
    return KafkaAccess(broker.mutual, "mtls", None, None, ARN, known, ca=broker.root.pem)


@pytest.mark.parametrize("traditional", [False, True])
def test_clients_are_let_in_by_their_certificate(broker: SecuredBroker, traditional: bool) -> None:
    chain, key = broker.root.client(traditional=traditional)
    reached = _access(broker, chain, key)
    assert _partitions(reached) == EXPECTED
    assert list(TopicBrokers(reached).existing(["events"])) == ["events"]
    asked = _asked_in_java(broker, reached)
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr
    assert "PRIVATE KEY" not in asked.stderr + repr(reached)


def test_a_private_ca_is_trusted_by_its_text_without_a_file(broker: SecuredBroker) -> None:
    reached = KafkaAccess(broker.tls, "tls", ca=broker.root.pem)
    assert _partitions(reached) == EXPECTED
    asked = _asked_in_java(broker, reached)
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr


def test_a_certificate_that_the_brokers_do_not_trust_is_said_with_the_secret(
    broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.jobs.kafka.brokers.TIMEOUT_S", 3.0)
    chain, key = Root().client()
    reached = _access(broker, chain, key)
    with pytest.raises(KafkaCredentialsRefused) as of_a_driver:
        _partitions(reached)
    with pytest.raises(KafkaCredentialsRefused) as of_topics:
        TopicBrokers(reached, answer_s=3.0).existing(["events"])
    for raised in (of_a_driver, of_topics):
        text = raised.value.render()
        assert "spec.kafka of the environment" in text and ARN in text and "PRIVATE KEY" not in text


@pytest.fixture
def folder(broker: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Any]]:
    """Of an environment with one job, whose brokers ask for a certificate; and how its secret is replaced."""
    (tmp_path / "app.py").write_text("", encoding="utf-8")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB), encoding="utf-8")
    (tmp_path / "ca.pem").write_text(broker.root.pem, encoding="utf-8")
    with EmulatedAws(log=tmp_path / "aws.log") as aws:
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        secrets = boto3.client("secretsmanager")
        arn = str(secrets.create_secret(Name="kafka", SecretString=json.dumps(_fields(*broker.root.client())))["ARN"])
        kafka: dict[str, Any] = {"kind": "external", "bootstrapServers": broker.mutual, "security": "mtls", "secret": arn}
        kafka |= {"caFile": "ca.pem", "replication": 1}
        written(tmp_path, lambda spec: spec.update(jobs=["job.yaml"], kafka=kafka))
        yield tmp_path, lambda *pair: secrets.put_secret_value(SecretId=arn, SecretString=json.dumps(_fields(*pair)))


def _fields(chain: str, key: str) -> dict[str, str]:
    return {"certificate": chain, "key": key}


def _topics(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.scripts", "topics", "apply", str(folder / "environment.yaml"), "--yes"]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def test_topics_are_applied_with_the_certificate_of_the_environments_secret(folder: tuple[Path, Any], broker: SecuredBroker) -> None:
    place, keep = folder
    done = _topics(place)
    assert done.returncode == 0, done.stderr
    assert "PRIVATE KEY" not in done.stdout + done.stderr
    existing = TopicBrokers(KafkaAccess(broker.address)).existing(["made-with-a-password"])
    assert existing["made-with-a-password"].partitions == 1
    keep(*broker.root.client(days=-2))
    expired = _topics(place)
    assert (expired.returncode, expired.stdout) == (5, "")
    assert expired.stderr.startswith("error[JOB-052]: ") and "expired on" in expired.stderr


def test_a_driver_with_a_certificate_that_is_not_trusted_ends_with_what_to_correct(folder: tuple[Path, Any], broker: SecuredBroker) -> None:
    place, keep = folder
    keep(*Root().client())
    boto3.client("s3").create_bucket(Bucket="the-checkpoints")
    (secret,) = boto3.client("secretsmanager").list_secrets()["SecretList"]
    configuration = RuntimeConfiguration(
        spec=str(place / "job.yaml"),
        app_path=(str(place),),
        master="local[1]",
        brokers=broker.mutual,
        kafka_security="mtls",
        kafka_secret=secret["ARN"],
        kafka_ca=broker.root.pem,
        job_folder="s3a://the-checkpoints/clicks",
        output_bucket="the-output",
    )
    configuration.write(place / "configuration.json")
    assert "PRIVATE KEY" not in (place / "configuration.json").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "penstock.jobs.driver.runtime", str(place / "configuration.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 5
    (error,) = json.loads(done.stdout.splitlines()[-1])["errors"]
    assert (error["code"], error["path"]) == ("JOB-111", "spec.kafka of the environment")
    assert secret["ARN"] in error["need"] and "PRIVATE KEY" not in done.stdout + done.stderr


def test_a_certificate_is_no_part_of_a_text() -> None:
    assert repr(ClientCertificate("chain", "key")) == "ClientCertificate()"
