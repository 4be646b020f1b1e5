from __future__ import annotations

import datetime
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from penstock.jobs.configuration.kafka_access import ClientCertificate, KafkaAccess
from penstock.jobs.errors import SecretUnusable
from penstock.jobs.kafka.client_certificate import client_certificate
from penstock.jobs.kafka.credentials import signed_in, variables

ARN = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def _certificate(key: Key, days: int = 1, since_days: int = 30) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jobs")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - datetime.timedelta(days=since_days)).not_valid_after(now + datetime.timedelta(days=days))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _pem(key: Key, *, traditional: bool = False, passphrase: bytes | None = None) -> str:
    format_ = serialization.PrivateFormat.TraditionalOpenSSL if traditional else serialization.PrivateFormat.PKCS8
    hidden = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, format_, hidden).decode()


KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
CHAIN = _certificate(KEY)


def _checked(chain: str | None, key: str | None) -> ClientCertificate:
    return client_certificate(chain, key, secret=ARN, path="spec.kafka.secret")


@pytest.mark.parametrize("key", [KEY, rsa.generate_private_key(65537, 2048)], ids=["ec", "rsa"])
def test_a_key_in_an_older_format_becomes_pkcs8_which_kafkas_client_reads(key: Key) -> None:
    chain = _certificate(key)
    for traditional in (False, True):
        checked = _checked(chain, _pem(key, traditional=traditional))
        assert (checked.chain, checked.key) == (chain, _pem(key))
        assert checked.key.startswith("-----BEGIN PRIVATE KEY-----")


def test_the_clients_own_certificate_is_the_first_of_a_chain() -> None:
    _checked(CHAIN + _certificate(OTHER), _pem(KEY))
    with pytest.raises(SecretUnusable, match="the client's own certificate is the first"):
        _checked(_certificate(OTHER) + CHAIN, _pem(KEY))


@pytest.mark.parametrize(
    ("chain", "key", "said"),
    [
        (CHAIN, None, "without key"),
        (None, _pem(KEY), "without certificate"),
        ("", "", "without certificate and key"),
        (CHAIN, _pem(OTHER), "whose key is of another certificate"),
        ("a certificate", _pem(KEY), "whose certificate is not PEM"),
        (CHAIN, "a key", "whose key is not PEM"),
        (CHAIN, _pem(KEY, passphrase=b"pass"), "whose key has a passphrase"),
        (_certificate(KEY, days=-2), _pem(KEY), "whose certificate expired on "),
        (_certificate(KEY, days=9, since_days=-5), _pem(KEY), "whose certificate is not valid before "),
    ],
    ids=["no-key", "no-certificate", "neither", "of-another", "certificate-text", "key-text", "passphrase", "expired", "early"],
)
def test_what_brokers_would_only_break_off_the_connection_for_is_said(chain: str | None, key: str | None, said: str) -> None:
    with pytest.raises(SecretUnusable) as raised:
        _checked(chain, key)
    error = raised.value
    assert (error.code, error.exit_code, error.path) == ("JOB-052", 5, "spec.kafka.secret")
    assert (error.given or "").startswith(f"{ARN}, {said}")
    for secret in (key or "").splitlines()[1:-1]:
        assert secret not in error.render()


class _Secrets:
    """What Secrets Manager answers."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803
        assert SecretId == ARN
        return {"SecretString": self._text}


def test_the_secret_is_read_and_passed_on_without_being_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    access = KafkaAccess("b:9094", "mtls", secret=ARN)
    read = signed_in(access, _Secrets(json.dumps({"certificate": CHAIN, "key": _pem(KEY)})))
    assert read.certificate == ClientCertificate(CHAIN, _pem(KEY))
    for name, value in variables(read).items():
        monkeypatch.setenv(name, value)
    assert signed_in(access, _Secrets("")) == read
    assert variables(access) == {}
    assert _pem(KEY) not in repr(read)


@pytest.mark.parametrize("text", ["-----BEGIN CERTIFICATE-----", "[]", '{"username": "a", "password": "b"}'])
def test_another_secret_is_refused(text: str) -> None:
    with pytest.raises(SecretUnusable, match="JSON with certificate and key"):
        signed_in(KafkaAccess("b:9094", "mtls", secret=ARN), _Secrets(text))
