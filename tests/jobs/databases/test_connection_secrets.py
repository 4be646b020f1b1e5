"""Credentials of connections, read from an emulated AWS Secrets Manager."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import boto3
import pytest

from penstock.jobs.databases.connection_secrets import with_credentials
from penstock.jobs.errors import SecretUnusable
from penstock.scripts.emulation.emulated_aws import EmulatedAws

pytestmark = pytest.mark.emulated

Keep = Callable[[object], str]
BANK = "postgresql://bank.example:5432/accounts?sslmode=verify-full"


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keep]:
    """Creates a secret and returns its ARN."""
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as aws, pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        client = boto3.client("secretsmanager")
        numbers = iter(range(100))

        def kept(secret: object) -> str:
            what = (
                {"SecretBinary": secret}
                if isinstance(secret, bytes)
                else {"SecretString": secret if isinstance(secret, str) else json.dumps(secret)}
            )
            return str(client.create_secret(Name=f"secret-{next(numbers)}", **what)["ARN"])

        yield kept


def test_user_and_password_are_put_into_the_url_whatever_characters_they_have(keep: Keep) -> None:
    rds = keep({"username": "o'neil@bank", "password": "p@ss:w/rd?#%", "engine": "postgres", "port": 5432})
    redis = keep({"password": "s3cret"})
    completed = with_credentials(
        {"bank": BANK, "cache": "rediss://cache.example/0", "open": "https://open.example"}, {"bank": rds, "cache": redis}
    )
    assert completed == {
        "bank": "postgresql://o%27neil%40bank:p%40ss%3Aw%2Frd%3F%23%25@bank.example:5432/accounts?sslmode=verify-full",
        "cache": "rediss://:s3cret@cache.example/0",
        "open": "https://open.example",
    }


def test_a_secret_may_be_the_whole_url(keep: Keep) -> None:
    hook = "https://hooks.example/T0/B0/xyz"
    completed = with_credentials(
        {"bank": BANK}, {"bank": keep({"url": "postgres://u:p@other/x"}), "alerts": keep(f"{hook}\n"), "more": keep({"url": hook})}
    )
    assert completed == {"bank": "postgres://u:p@other/x", "alerts": hook, "more": hook}


@pytest.mark.parametrize(
    ("url", "secret", "need"),
    [
        (BANK, "just-a-password", "JSON with username and password"),
        (BANK, {"username": "me"}, "JSON with username and password"),
        (BANK, ["me", "hidden"], "JSON with username and password"),
        (BANK, {"url": "https://hidden.example"}, "a URL of the connection's kind in the secret"),
        (None, "hidden", "a URL of the connection's kind in the secret"),
        (None, {"username": "me", "password": "hidden"}, "a URL in the environment"),
        (BANK, b"hidden", "a text"),
    ],
)
def test_an_invalid_secret_is_reported_without_its_content(url: str | None, secret: object, need: str, keep: Keep) -> None:
    with pytest.raises(SecretUnusable) as raised:
        with_credentials({} if url is None else {"bank": url}, {"bank": keep(secret)})
    assert need in raised.value.need
    assert "hidden" not in raised.value.render() and "just-a-password" not in raised.value.render()


def test_a_missing_secret_is_reported_with_its_arn(keep: Keep) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gone-AbCdEf"
    with pytest.raises(SecretUnusable, match="ResourceNotFoundException") as raised:
        with_credentials({"bank": BANK}, {"bank": arn})
    assert arn in raised.value.need
