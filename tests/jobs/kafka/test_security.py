"""Authentication of clients by the brokers: options, settings, and the token that proves an AWS identity."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from pydantic import ValidationError

from penstock.jobs.configuration.kafka_access import Credentials, KafkaAccess, Security
from penstock.jobs.configuration.runtime import KAFKA_PASSWORD_VARIABLE, KAFKA_USER_VARIABLE, RuntimeConfiguration
from penstock.jobs.kafka.credentials import signed_in
from penstock.jobs.kafka.errors import NoKafkaCredentials
from penstock.jobs.kafka.security import client_settings, token
from penstock.scripts.installation import locks
from tests.jobs.presigned import signature

REGION = "eu-central-1"
KEY, SECRET, SESSION = "AKIAEXAMPLE", "the secret", "the session"
CONFIGURATION = {"spec": "job.yaml", "master": "local[2]", "jobFolder": "s3a://a/b", "outputBucket": "c", "sparkConf": {}}
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without credentials, and without the wait for those of an instance."""
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def somebody(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(CREDENTIALS[:3], (KEY, SECRET, SESSION), strict=True):
        monkeypatch.setenv(name, value)


def test_plaintext_is_the_default_and_needs_nothing() -> None:
    access = KafkaAccess("127.0.0.1:9092")
    assert access.spark_options() == {"kafka.bootstrap.servers": "127.0.0.1:9092"}
    assert client_settings(access) == {"bootstrap.servers": "127.0.0.1:9092"}


def test_tls_trusts_the_system_or_a_file_of_certificates() -> None:
    access = KafkaAccess("b:9094", "tls")
    assert access.spark_options() == {"kafka.bootstrap.servers": "b:9094", "kafka.security.protocol": "SSL"}
    assert client_settings(access) == {"bootstrap.servers": "b:9094", "security.protocol": "SSL"}
    own = KafkaAccess("b:9094", "tls", ca_file="/etc/ca.pem")
    assert own.spark_options() | {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": "/etc/ca.pem"} == own.spark_options()
    assert client_settings(own)["ssl.ca.location"] == "/etc/ca.pem"


def test_iam_is_signed_by_msks_own_library_in_java_and_by_its_token_signer_here(somebody: None) -> None:
    access = KafkaAccess("b:9098", "iam", REGION)
    assert access.spark_options() == {
        "kafka.bootstrap.servers": "b:9098",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "AWS_MSK_IAM",
        "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "kafka.sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }
    settings = client_settings(access)
    sign = settings.pop("oauth_cb")
    assert settings == {"bootstrap.servers": "b:9098", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    signed, until_s = sign("")
    assert parse_qs(urlparse(_url(signed)).query)["Action"] == ["kafka-cluster:Connect"]
    assert until_s > time.time()


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(("security", "mechanism", "module"), [("sasl-scram", "SCRAM-SHA-512", SCRAM), ("sasl-plain", "PLAIN", PLAIN)])
def test_user_and_password_go_over_tls_to_both_kinds_of_client(security: Security, mechanism: str, module: str) -> None:
    access = KafkaAccess("b:9096", security, secret="arn", credentials=Credentials("me", 'a"b\\c'))
    assert access.spark_options() == {
        "kafka.bootstrap.servers": "b:9096",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f'{module} required username="me" password="a\\"b\\\\c";',
    }
    assert client_settings(access) == {
        "bootstrap.servers": "b:9096",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": "me",
        "sasl.password": 'a"b\\c',
    }


def test_a_password_without_a_secret_is_an_invalid_configuration() -> None:
    with pytest.raises(ValidationError, match="a secret with the client's credentials, for sasl-scram"):
        RuntimeConfiguration.model_validate({**CONFIGURATION, "brokers": "b:9096", "kafkaSecurity": "sasl-scram"})


def test_a_secret_that_a_parent_process_has_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KAFKA_USER_VARIABLE, "me")
    monkeypatch.setenv(KAFKA_PASSWORD_VARIABLE, "hidden")
    known = signed_in(KafkaAccess("b:9096", "sasl-plain", secret="arn"))
    assert known.credentials == Credentials("me", "hidden")
    assert "hidden" not in repr(known) and "me'" not in repr(known)
    assert signed_in(KafkaAccess("b:9092")) == KafkaAccess("b:9092")


def test_the_classes_in_sparks_settings_are_in_a_jar_of_the_pom() -> None:
    pom = (locks.folder() / "spark-jars.pom.xml").read_text()
    assert "<artifactId>aws-msk-iam-auth</artifactId>" in pom


def _url(signed: str) -> str:
    return base64.urlsafe_b64decode(signed + "=" * (-len(signed) % 4)).decode()


def test_a_token_is_a_signed_question_to_connect_in_one_region_that_holds_for_a_quarter_of_an_hour(somebody: None) -> None:
    before_s = time.time()
    signed, until_s = token(REGION)
    url = urlparse(_url(signed))
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc, url.path) == ("https", f"kafka.{REGION}.amazonaws.com", "/")
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Expires"] == "900"
    assert query["X-Amz-Security-Token"] == SESSION
    day = query["X-Amz-Date"][:8]
    assert query["X-Amz-Credential"] == f"{KEY}/{day}/{REGION}/kafka-cluster/aws4_request"
    assert before_s - 1 + 900 <= until_s <= time.time() + 900


def test_the_signature_is_that_of_the_secret_and_of_no_other(somebody: None) -> None:
    url = _url(token(REGION)[0])
    result = parse_qs(urlparse(url).query)["X-Amz-Signature"][0]
    assert result == signature(url, SECRET)
    assert result != signature(url, f"{SECRET}!")


def test_missing_credentials_are_reported_before_a_client_waits(nobody: None) -> None:
    with pytest.raises(NoKafkaCredentials) as raised:
        client_settings(KafkaAccess("b:9098", "iam", REGION))
    error = raised.value
    assert (error.code, error.exit_code, error.given) == ("JOB-010", 4, "none found")
    assert "Pod Identity" in error.fix


def test_half_of_the_credentials_are_none(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    with pytest.raises(NoKafkaCredentials) as raised:
        token(REGION)
    assert "AWS_SECRET_ACCESS_KEY" in raised.value.given


def test_a_driver_is_configured_by_its_configuration_file(tmp_path: Path) -> None:
    written = RuntimeConfiguration.model_validate({**CONFIGURATION, "brokers": "b:9098", "kafkaSecurity": "iam", "region": REGION})
    written.write(tmp_path / "configuration.json")
    assert RuntimeConfiguration.read(tmp_path / "configuration.json").kafka == KafkaAccess("b:9098", "iam", REGION)
    assert RuntimeConfiguration.model_validate({**CONFIGURATION, "brokers": "b:1"}).kafka == KafkaAccess("b:1")


def test_iam_without_a_region_is_an_invalid_configuration() -> None:
    with pytest.raises(ValidationError, match="a region"):
        RuntimeConfiguration.model_validate({**CONFIGURATION, "brokers": "b:9098", "kafkaSecurity": "iam"})
