"""Clients that are let in by a real broker: over TLS, with a token, and MSK's own way; and those that are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import boto3
import pytest
import yaml

from penstock.jobs.configuration.kafka_access import Credentials, KafkaAccess, Security
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.errors import SecretUnusable
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import BrokersUnreachable, KafkaCredentialsRefused
from penstock.jobs.spec import KafkaSource
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import kafka_topics
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.topics.address import access
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import WantedTopic, changes
from penstock.scripts.topics.errors import BrokersNotReached
from tests.emulated.secured_broker import PASSWORD, REGION, USER, SecuredBroker
from tests.infra.environments import read, written
from tests.jobs.presigned import signature

KEY, SECRET = "AKIAEXAMPLE", "the secret of a test"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    secured = SecuredBroker(tmp_path_factory.mktemp("kafka"))
    with secured:
        kafka_topics.create(secured.address, {"events": 3})
        secured.add_user()
        yield secured


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


def _partitions(access: KafkaAccess) -> tuple[dict[str, int], dict[int, int]]:
    """What a driver asks before it starts."""
    asked = Brokers(access, group="penstock.test")
    try:
        return asked.partitions(["events"]), asked.starting_offsets(KafkaSource.model_validate({"topic": "events"}), "events", 3)
    finally:
        asked.close()


EXPECTED = ({"events": 3}, {0: 0, 1: 0, 2: 0})


def test_a_driver_reads_its_topics_over_tls(broker: SecuredBroker) -> None:
    assert _partitions(KafkaAccess(broker.tls, "tls", ca_file=str(broker.ca_file))) == EXPECTED


def test_brokers_with_an_untrusted_certificate_are_rejected(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.jobs.kafka.brokers.TIMEOUT_S", 3.0)
    with pytest.raises(BrokersUnreachable):
        _partitions(KafkaAccess(broker.tls, "tls"))
    with pytest.raises(BrokersNotReached) as raised:
        TopicBrokers(KafkaAccess(broker.tls, "tls"), answer_s=3.0).existing(["events"])
    assert "certificate" in raised.value.given


def test_a_driver_is_let_in_by_the_token_that_it_signs(broker: SecuredBroker, somebody: None) -> None:
    before = len(broker.sent())
    assert _partitions(KafkaAccess(broker.tokens, "iam", REGION, str(broker.ca_file))) == EXPECTED
    sent = broker.sent()[before:]
    assert {mechanism for mechanism, _ in sent} == {"OAUTHBEARER"}
    for _, url in sent:
        query = parse_qs(urlparse(url).query)
        assert query["X-Amz-Credential"][0].startswith(f"{KEY}/")
        assert query["X-Amz-Signature"] == [signature(url, SECRET)]


def test_authorized_clients_create_topics(broker: SecuredBroker, somebody: None) -> None:
    brokers = TopicBrokers(KafkaAccess(broker.tokens, "iam", REGION, str(broker.ca_file)))
    (made,) = changes([WantedTopic("made-with-a-token", 2)], brokers.existing(["made-with-a-token"]))
    assert brokers.refusals([made]) == []
    brokers.do(made, "create")
    assert brokers.existing(["made-with-a-token"])["made-with-a-token"].partitions == 2


def test_who_signs_nothing_is_not_let_in(broker: SecuredBroker) -> None:
    with pytest.raises(BrokersNotReached):
        TopicBrokers(KafkaAccess(broker.tokens, "tls", ca_file=str(broker.ca_file)), answer_s=3.0).existing(["events"])


def _asked_in_java(broker: SecuredBroker, access: KafkaAccess, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Java client with Spark's jars and exactly the options of its Kafka source."""
    import pyspark

    jackson = sorted((Path(pyspark.__file__).parent / "jars").glob("jackson-*.jar"))
    logging = sorted((Path(pyspark.__file__).parent / "jars").glob("slf4j-api*.jar"))
    classpath = os.pathsep.join(str(path) for path in [*layout.spark_jars(), *jackson, *logging, broker.classes])
    options = [f"{name.removeprefix('kafka.')}={value}" for name, value in access.spark_options().items()]
    command = ["java", f"-Djdk.net.hosts.file={broker.hosts_file}", "-cp", classpath, "AskCluster", *options]
    own = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true", **variables}
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=120, check=False)


def test_sparks_client_reads_over_tls(broker: SecuredBroker) -> None:
    asked = _asked_in_java(broker, KafkaAccess(broker.tls, "tls", ca_file=str(broker.ca_file)))
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr


def test_sparks_client_signs_in_msks_own_way_with_the_jars_of_the_image(broker: SecuredBroker) -> None:
    before = len(broker.sent())
    access = KafkaAccess(broker.java, "iam", REGION, str(broker.ca_file))
    asked = _asked_in_java(broker, access, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr
    sent = broker.sent()[before:]
    assert {mechanism for mechanism, _ in sent} == {"AWS_MSK_IAM"}
    payload = json.loads(sent[0][1])
    assert (payload["version"], payload["action"]) == ("2020_10_22", "kafka-cluster:Connect")
    scope = payload["x-amz-credential"].split("/")
    assert (scope[0], scope[2:]) == (KEY, [REGION, "kafka-cluster", "aws4_request"])


def test_sparks_client_without_credentials_is_not_let_in(broker: SecuredBroker, tmp_path: Path) -> None:
    access = KafkaAccess(broker.java, "iam", REGION, str(broker.ca_file))
    asked = _asked_in_java(broker, access, HOME=str(tmp_path), AWS_CONFIG_FILE=str(tmp_path / "none"))
    assert asked.returncode != 0
    assert "credentials" in asked.stderr.lower()


ARN = f"arn:aws:secretsmanager:{REGION}:111122223333:secret:kafka-AbCdEf"


def _with_password(broker: SecuredBroker, security: Security, password: str = PASSWORD, user: str = USER) -> KafkaAccess:
    address = broker.scram if security == "sasl-scram" else broker.password
    return KafkaAccess(address, security, None, str(broker.ca_file), ARN, Credentials(user, password))


@pytest.mark.parametrize("security", ["sasl-scram", "sasl-plain"])
def test_clients_are_let_in_by_user_and_password(broker: SecuredBroker, security: Security) -> None:
    reached = _with_password(broker, security)
    assert _partitions(reached) == EXPECTED
    assert list(TopicBrokers(reached).existing(["events"])) == ["events"]
    asked = _asked_in_java(broker, reached)
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr
    assert PASSWORD not in asked.stderr and USER not in repr(reached) and PASSWORD not in repr(reached)


@pytest.mark.parametrize(
    ("security", "password", "user"),
    [
        ("sasl-scram", "mistyped", USER),
        ("sasl-scram", PASSWORD, "nobody"),
        ("sasl-plain", "mistyped", USER),
        ("sasl-plain", PASSWORD, "nobody"),
    ],
)
def test_a_wrong_password_or_user_is_said_with_the_field_and_the_secret(
    broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch, security: Security, password: str, user: str
) -> None:
    monkeypatch.setattr("penstock.jobs.kafka.brokers.TIMEOUT_S", 3.0)
    reached = _with_password(broker, security, password, user)
    with pytest.raises(KafkaCredentialsRefused) as of_a_driver:
        _partitions(reached)
    with pytest.raises(KafkaCredentialsRefused) as of_topics:
        TopicBrokers(reached, answer_s=3.0).existing(["events"])
    for raised in (of_a_driver, of_topics):
        text = raised.value.render()
        assert "spec.kafka of the environment" in text and ARN in text and "username and password in the secret" in text
        assert not any(one in text for one in ("mistyped", PASSWORD, USER, "nobody"))


def test_another_mechanism_than_the_listeners_is_said(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.jobs.kafka.brokers.TIMEOUT_S", 3.0)
    reached = KafkaAccess(broker.scram, "sasl-plain", None, str(broker.ca_file), ARN, Credentials(USER, PASSWORD))
    with pytest.raises(KafkaCredentialsRefused) as raised:
        _partitions(reached)
    assert "security: sasl-scram or sasl-plain" in raised.value.fix


def test_a_command_reads_the_secret_of_the_environment(broker: SecuredBroker, tmp_path: Path) -> None:
    with EmulatedAws(log=tmp_path / "aws.log") as aws:

        def change(spec: dict[str, object]) -> None:
            spec["endpoints"] = {"aws": aws.endpoint}
            spec["kafka"] = {"kind": "external", "bootstrapServers": broker.scram, "security": "sasl-scram", "secret": ARN}

        environment = read(tmp_path, change)
        secrets = AwsAccess(environment).client("secretsmanager")
        kept = str(secrets.create_secret(Name="kafka", SecretString=json.dumps({"username": USER, "password": PASSWORD}))["ARN"])
        # With an emulated AWS the brokers are on this machine, over plaintext, unless the command says otherwise.
        reached = access(environment, None, "sasl-scram", str(broker.ca_file), kept)
        assert (reached.secret, reached.credentials) == (kept, Credentials(USER, PASSWORD))
        assert list(TopicBrokers(reached).existing(["events"])) == ["events"]
        with pytest.raises(SecretUnusable) as missing:
            access(environment, None, "sasl-scram", str(broker.ca_file), None)
        assert ARN in missing.value.need
        secrets.put_secret_value(SecretId=kept, SecretString='{"username": "a"}')
        with pytest.raises(SecretUnusable, match="JSON with username and password"):
            access(environment, None, "sasl-scram", str(broker.ca_file), kept)


JOB = {
    "apiVersion": "penstock/v1",
    "kind": "StreamingJob",
    "metadata": {"name": "clicks"},
    "spec": {
        "app": "app",
        "parallelism": 1,
        "executor": {"slots": 1, "memory": "2g"},
        "sources": {"a": {"kafka": {"topic": "events", "partitions": 3}}},
        "sinks": {"out": {"kafka": {"topic": "made-with-a-password"}}},
    },
}


@dataclass(frozen=True)
class Place:
    """An environment with one job, whose brokers ask for user and password.

    Args:
        folder: of its file and of the job's.
        aws: that has the secret.
        arn: of the secret.
    """

    folder: Path
    aws: EmulatedAws
    arn: str

    def keep(self, password: str) -> None:
        """Stores another password."""
        self.secrets.put_secret_value(SecretId=self.arn, SecretString=json.dumps({"username": USER, "password": password}))

    @property
    def secrets(self) -> Any:
        """A client of Secrets Manager."""
        return boto3.client("secretsmanager", endpoint_url=self.aws.endpoint)


@pytest.fixture
def place(broker: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    (tmp_path / "app.py").write_text("", encoding="utf-8")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB), encoding="utf-8")
    with EmulatedAws(log=tmp_path / "aws.log") as aws:
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        text = json.dumps({"username": USER, "password": PASSWORD})
        arn = str(boto3.client("secretsmanager").create_secret(Name="kafka", SecretString=text)["ARN"])
        kafka = {"kind": "external", "bootstrapServers": broker.scram, "security": "sasl-scram", "secret": arn, "replication": 1}
        written(tmp_path, lambda spec: spec.update(jobs=["job.yaml"], kafka=kafka))
        yield Place(tmp_path, aws, arn)


def _topics(place: Place, broker: SecuredBroker) -> subprocess.CompletedProcess[str]:
    words = ["topics", "apply", str(place.folder / "environment.yaml"), "--yes", "--ca-file", str(broker.ca_file)]
    command = [sys.executable, "-m", "penstock.scripts", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def test_topics_are_applied_with_the_password_of_the_environments_secret(place: Place, broker: SecuredBroker) -> None:
    done = _topics(place, broker)
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    existing = TopicBrokers(KafkaAccess(broker.address)).existing(["made-with-a-password"])
    assert existing["made-with-a-password"].partitions == 1
    place.keep("mistyped")
    refused = _topics(place, broker)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert refused.stderr.startswith("error[JOB-111]: ") and "Traceback" not in refused.stderr
    assert place.arn in refused.stderr and "mistyped" not in refused.stderr


def test_a_driver_with_a_wrong_password_ends_with_what_to_correct(place: Place, broker: SecuredBroker) -> None:
    place.keep("mistyped")
    boto3.client("s3").create_bucket(Bucket="the-checkpoints")
    configuration = RuntimeConfiguration(
        spec=str(place.folder / "job.yaml"),
        app_path=(str(place.folder),),
        master="local[1]",
        brokers=broker.scram,
        kafka_security="sasl-scram",
        kafka_secret=place.arn,
        kafka_ca_file=str(broker.ca_file),
        job_folder="s3a://the-checkpoints/clicks",
        output_bucket="the-output",
    )
    configuration.write(place.folder / "configuration.json")
    assert "mistyped" not in (place.folder / "configuration.json").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "penstock.jobs.driver.runtime", str(place.folder / "configuration.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 5
    # What `penstock run` shows, and a pod's termination message has; the driver's log has the place in the code, too.
    last = json.loads(done.stdout.splitlines()[-1])
    (error,) = last["errors"]
    assert (last["event"], error["code"], error["path"]) == ("failed", "JOB-111", "spec.kafka of the environment")
    assert place.arn in error["need"] and "username and password in the secret" in error["fix"]
    assert not any(word in done.stdout + done.stderr for word in ("mistyped", USER))
