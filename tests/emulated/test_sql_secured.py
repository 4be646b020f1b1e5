"""``penstock sql`` as a process, on real brokers that ask for a password or a certificate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from penstock.jobs.local.recording import Record
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.layout import ROOT
from penstock.scripts.local import kafka_topics
from tests.emulated.clicks import APP, LIMIT_S, SPEC
from tests.emulated.secured_broker import PASSWORD, USER, Root, SecuredBroker
from tests.infra.environments import written

# Each starts a broker and several processes, two of them with Spark.
pytestmark = pytest.mark.chaos
QUERY = "SELECT user, page FROM clicks WHERE page <> '/health' ORDER BY user"
STREAMED = "SELECT user, page FROM clicks WHERE page <> '/health'"
ROWS = [{"user": "ann", "page": "/"}, {"user": "bob", "page": "/cart"}]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("kafka")) as secured:
        secured.add_user()
        kafka_topics.create(secured.address, {"clicks": 2})
        clicks = [*ROWS, {"user": "eve", "page": "/health"}]
        values = [json.dumps({**one, "at": "2025-04-05T12:00:00Z"}).encode() for one in clicks]
        kafka_topics.feed(secured.address, "clicks", 2, [Record(value, partition=0) for value in values], lambda _: None)
        yield secured


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an emulated Secrets Manager, which the commands reach by their variables; beside a job."""
    (tmp_path / "clicks_app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "clicks.yaml").write_text(SPEC.partition("  local:")[0], encoding="utf-8")
    with EmulatedAws(log=tmp_path / "aws.log") as aws:
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        yield boto3.client("secretsmanager")


def _kept(secrets: Any, **text: str) -> str:
    return str(secrets.create_secret(Name="kafka", SecretString=json.dumps(text))["ARN"])


def _sql(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables.pop("PENSTOCK_ENVIRONMENT", None)
    command = (sys.executable, "-m", "penstock.scripts", "sql", *words, "-o", "json")
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def _rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _refusal(done: subprocess.CompletedProcess[str], arn: str) -> dict[str, str]:
    assert done.returncode == 5 and "Traceback" not in done.stderr, done.stderr
    (error,) = json.loads(done.stdout)["errors"]
    assert error["code"] == "JOB-111" and arn in error["need"]
    assert isinstance(error, dict)
    return error


def test_rows_are_followed_with_the_password_of_the_environments_secret(broker: SecuredBroker, secrets: Any, tmp_path: Path) -> None:
    arn = _kept(secrets, username=USER, password=PASSWORD)
    kafka = {"kind": "external", "bootstrapServers": broker.scram, "security": "sasl-scram", "secret": arn, "replication": 1}
    environment = written(tmp_path, lambda spec: spec.update(jobs=["clicks.yaml"], kafka=kafka))
    asked = (str(environment), STREAMED, "--follow", "--from", "earliest", "--limit", "2", "--ca-file", str(broker.ca_file))
    done = _sql(tmp_path, *asked)
    assert _rows(done) == ROWS
    assert PASSWORD not in done.stderr
    secrets.put_secret_value(SecretId=arn, SecretString=json.dumps({"username": USER, "password": "mistyped"}))
    refused = _sql(tmp_path, *asked)
    assert "username and password in the secret" in _refusal(refused, arn)["fix"]
    assert "mistyped" not in refused.stdout + refused.stderr


def test_rows_are_shown_with_a_certificate_and_without_an_environment(broker: SecuredBroker, secrets: Any, tmp_path: Path) -> None:
    certificate, key = broker.root.client()
    arn = _kept(secrets, certificate=certificate, key=key)
    asked = ("clicks.yaml", QUERY, "--brokers", broker.mutual, "--security", "mtls", "--secret", arn, "--ca-file", str(broker.ca_file))
    done = _sql(tmp_path, *asked)
    assert _rows(done) == ROWS
    assert "PRIVATE KEY" not in done.stderr
    stranger, its_key = Root().client()
    secrets.put_secret_value(SecretId=arn, SecretString=json.dumps({"certificate": stranger, "key": its_key}))
    refused = _sql(tmp_path, *asked)
    assert "certificate" in _refusal(refused, arn)["fix"]
    assert "PRIVATE KEY" not in refused.stdout + refused.stderr
