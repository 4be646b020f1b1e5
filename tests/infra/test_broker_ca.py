from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.broker_ca import broker_ca
from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.sizing.errors import PenstockError
from tests.infra.authorities import authority
from tests.infra.environments import read

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"


def _environment(folder: Path, text: str | None, **kafka: Any) -> Environment:
    if text is not None:
        (folder / "ca.pem").write_text(text)
    given = {"kind": "external", "bootstrapServers": "b:9094", "caFile": "ca.pem", **kafka}
    return read(folder, lambda spec: spec.update(kafka=given, jobs=[]))


def test_the_file_is_beside_the_environment_and_its_text_is_for_pods(tmp_path: Path) -> None:
    environment = _environment(tmp_path, authority() + authority())
    assert broker_ca(environment) == _text_of(tmp_path)
    (tmp_path / "copied").mkdir()
    copied = tmp_path / "copied" / "environment.yaml"
    copied.write_text(environment.text())
    assert broker_ca(load(copied)) == _text_of(tmp_path)


def _text_of(folder: Path) -> str:
    return (folder / "ca.pem").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory"),
        ("a certificate", "no certificate in PEM"),
        ("", "no certificate in PEM"),
        (authority(-2), "a certificate has expired on "),
        (authority(ca=False), "no certificate of a CA"),
        (authority() + "-----BEGIN PRIVATE KEY-----", "a private key, which belongs in the secret"),
    ],
    ids=["missing", "text", "empty", "expired", "no-authority", "key"],
)
def test_a_file_without_usable_certificates_is_refused_with_its_line(text: str | None, said: str, tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        _environment(tmp_path, text)
    error = raised.value
    assert (error.code, error.exit_code, error.path) == ("INF-066", 2, "spec.kafka.caFile")
    assert said in (error.need or "")
    assert error.at is not None and error.at.line is not None


@pytest.mark.parametrize(
    ("kafka", "said"),
    [
        ({"kind": "standard", "bootstrapServers": None}, "caFile with kind: external and TLS"),
        ({"security": "plaintext"}, "caFile with kind: external and TLS"),
        ({"security": "mtls"}, "secret with security: sasl-scram, sasl-plain or mtls"),
        ({"security": "tls", "secret": SECRET}, "secret with security: sasl-scram, sasl-plain or mtls"),
    ],
)
def test_ca_and_secret_are_given_where_they_have_a_use(kafka: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        _environment(tmp_path, authority(), **kafka)
    assert said in (raised.value.need or "")
    assert _environment(tmp_path, authority(), security="mtls", secret=SECRET).spec.kafka is not None
