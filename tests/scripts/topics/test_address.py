"""Bootstrap servers of environments that need no request to AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.scripts.topics.address import access
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read


def environment(folder: Path, kafka: dict[str, Any] | None, *, emulated: bool = False) -> Environment:
    def change(spec: dict[str, Any]) -> None:
        spec.pop("kafka")
        spec.pop("jobs")
        if kafka is not None:
            spec["kafka"] = kafka
        if emulated:
            spec["endpoints"] = {"aws": "http://127.0.0.1:1"}

    return read(folder, change)


def test_brokers_elsewhere_are_those_of_the_file_over_tls(tmp_path: Path) -> None:
    deployed = environment(tmp_path, {"kind": "external", "bootstrapServers": "a:9094,b:9094"})
    assert access(deployed, None, None, "/ca.pem") == KafkaAccess("a:9094,b:9094", "tls", "us-east-1", "/ca.pem")
    own = environment(tmp_path, {"kind": "external", "bootstrapServers": "a:9092", "security": "plaintext"})
    assert access(own, None, None, None) == KafkaAccess("a:9092", "plaintext", "us-east-1")


def test_brokers_that_are_named_win_and_keep_the_environments_security(tmp_path: Path) -> None:
    deployed = environment(tmp_path, {"kind": "standard"})
    assert access(deployed, "c:9098", None, None) == KafkaAccess("c:9098", "iam", "us-east-1")
    assert access(deployed, "c:9092", "plaintext", None) == KafkaAccess("c:9092", "plaintext", "us-east-1")


def test_brokers_of_an_emulated_aws_are_on_this_machine(tmp_path: Path) -> None:
    assert access(environment(tmp_path, {"kind": "standard"}, emulated=True), "c:9092", None, None).security == "plaintext"


@pytest.mark.parametrize("kafka", [None, {"kind": "external"}])
def test_an_environment_without_brokers_says_how_to_name_some(tmp_path: Path, kafka: dict[str, Any] | None) -> None:
    with pytest.raises(PenstockError) as raised:
        access(environment(tmp_path, kafka), None, None, None)
    assert (raised.value.code, raised.value.exit_code, raised.value.fix) == ("TOP-004", 2, "--brokers HOST:PORT")


def test_an_aws_that_does_not_respond_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        access(environment(tmp_path, {"kind": "standard"}, emulated=True), None, None, None)
    assert (raised.value.code, raised.value.exit_code, raised.value.path) == ("RUN-021", 5, "MSK in us-east-1")


def test_missing_credentials_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(PenstockError) as raised:
        access(environment(tmp_path, {"kind": "standard"}), None, None, None)
    assert (raised.value.code, raised.value.exit_code) == ("TOOL-030", 4)
