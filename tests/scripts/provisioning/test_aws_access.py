from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.errors import AwsNotReached, AwsRefused, CredentialsMissing
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import CredentialsRefused, OtherAccount

KEYS = {"AWS_ACCESS_KEY_ID": "some", "AWS_SECRET_ACCESS_KEY": "thing"}


@contextmanager
def sts(status: int, body: str) -> Iterator[str]:
    """An STS with one fixed response."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _refusal(code: str) -> str:
    return f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"


def _identity(account: str) -> str:
    result = f"<Arn>arn:aws:iam::{account}:user/who</Arn><UserId>x</UserId><Account>{account}</Account>"
    return f"<GetCallerIdentityResponse><GetCallerIdentityResult>{result}</GetCallerIdentityResult></GetCallerIdentityResponse>"


@pytest.fixture
def on_aws(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without AWS variables."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def _with_keys(on_aws: pytest.MonkeyPatch, endpoint: str) -> None:
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": endpoint}.items():
        on_aws.setenv(name, value)


def test_the_caller_of_the_environments_account_is_returned(on_aws: pytest.MonkeyPatch) -> None:
    environment = load("production")
    with sts(200, _identity(environment.spec.account)) as endpoint:
        _with_keys(on_aws, endpoint)
        assert AwsAccess(environment).check_account().arn == f"arn:aws:iam::{environment.spec.account}:user/who"


def test_credentials_of_another_account_are_refused_with_both_accounts(on_aws: pytest.MonkeyPatch) -> None:
    with sts(200, _identity("999999999999")) as endpoint:
        _with_keys(on_aws, endpoint)
        with pytest.raises(OtherAccount) as raised:
            AwsAccess(load("production")).check_account()
    assert "999999999999" in raised.value.given
    assert load("production").spec.account in raised.value.need
    assert raised.value.exit_code == 4


def test_a_machine_without_credentials_is_asked_to_sign_in(on_aws: pytest.MonkeyPatch) -> None:
    with pytest.raises(CredentialsMissing) as raised:
        AwsAccess(load("production")).check_account()
    assert "aws sso login" in raised.value.fix
    assert raised.value.exit_code == 4


def test_a_missing_profile_is_named(on_aws: pytest.MonkeyPatch) -> None:
    on_aws.setenv("AWS_PROFILE", "nobodys")
    with pytest.raises(CredentialsMissing) as raised:
        AwsAccess(load("production")).check_account()
    assert "nobodys" in raised.value.given


@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("ExpiredToken", "unexpired"),
        ("RequestExpired", "unexpired"),
        ("InvalidClientTokenId", "valid credentials"),
        ("SignatureDoesNotMatch", "valid credentials"),
    ],
)
def test_invalid_and_expired_credentials_are_distinguished(on_aws: pytest.MonkeyPatch, code: str, needs: str) -> None:
    with sts(403, _refusal(code)) as endpoint:
        _with_keys(on_aws, endpoint)
        with pytest.raises(CredentialsRefused) as raised:
            AwsAccess(load("production")).check_account()
    assert code in raised.value.given
    assert needs in raised.value.need
    assert raised.value.exit_code == 4


def test_a_right_that_is_missing_is_no_matter_of_credentials(on_aws: pytest.MonkeyPatch) -> None:
    with sts(403, _refusal("AccessDenied")) as endpoint:
        _with_keys(on_aws, endpoint)
        with pytest.raises(AwsRefused) as raised:
            AwsAccess(load("production")).check_account()
    assert raised.value.exit_code == 5


def test_an_endpoint_that_accepts_a_connection_and_never_responds_is_reported_within_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = f"http://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(AwsNotReached) as raised:
            AwsAccess(load("local").at(endpoint), read_limit_s=0.5).check_account()
    assert raised.value.path == endpoint
    assert "Read timeout" in raised.value.given


def test_an_emulated_aws_gets_keys_that_are_none_whatever_the_user_has() -> None:
    environment: Environment = load("local").at("http://127.0.0.1:1")
    variables = AwsAccess(environment, {"AWS_PROFILE": "mine", "AWS_SESSION_TOKEN": "secret", "PATH": "/bin"}).variables
    assert variables["AWS_ACCESS_KEY_ID"] == environment.spec.account
    assert variables["PATH"] == "/bin"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & set(variables)
    assert variables["AWS_CONFIG_FILE"] == "/dev/null"


def test_aws_itself_gets_the_users_own_credentials() -> None:
    variables = AwsAccess(load("production"), {"AWS_PROFILE": "mine"}).variables
    assert variables == {"AWS_PROFILE": "mine", "AWS_REGION": "us-east-1"}
