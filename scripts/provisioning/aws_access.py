"""AWS of an environment: its account, region and, for an emulator, endpoints; boto3's exceptions are converted into coded errors."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

from penstock.infra.environment import Environment
from penstock.scripts.errors import AwsNotReached, AwsRefused, CredentialsMissing
from penstock.scripts.provisioning.errors import CredentialsRefused, OtherAccount

# AWS responds within a second; an endpoint that accepts connections and never responds is reported after this time.
CONNECT_LIMIT_S = 5.0
READ_LIMIT_S = 20.0
ATTEMPTS = 3

# Exceptions of boto3 for missing or incomplete credentials.
NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, ProfileNotFound, CredentialRetrievalError, SSOError, TokenRetrievalError)
# Source: AWS STS and IAM, "Common errors", and the corresponding codes of S3, EC2 and the JSON services.
# What IAM, ECR, EKS and EC2 answer of something that does not exist.
_ABSENT = {
    "NoSuchEntity",
    "ImageNotFoundException",
    "RepositoryNotFoundException",
    "ResourceNotFoundException",
    "InvalidGroup.NotFound",
}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_WRONG = {
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthFailure",
    "InvalidToken",
    "IncompleteSignature",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
}
SIGN_IN = "sign in (aws sso login, or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"


@dataclass(frozen=True)
class Caller:
    """The identity of this machine's AWS credentials.

    Args:
        account: 12 digits.
        arn: ARN of the user or of the role's session.
    """

    account: str
    arn: str


class AwsAccess:
    """AWS of one environment.

    Args:
        environment: supplies account, region and endpoints.
        base: environment variables of this process.
        read_limit_s: read timeout in seconds.
    """

    def __init__(self, environment: Environment, base: Mapping[str, str] | None = None, *, read_limit_s: float = READ_LIMIT_S) -> None:
        self.environment = environment
        # Making clients of one session is not safe in several threads.
        self._making = threading.Lock()
        self._base = dict(os.environ if base is None else base)
        self._config = Config(
            connect_timeout=CONNECT_LIMIT_S,
            read_timeout=read_limit_s,
            retries={"mode": "standard", "max_attempts": 1 if environment.spec.endpoints else ATTEMPTS},
            s3={"addressing_style": "path"} if environment.spec.endpoints else None,
        )

    @cached_property
    def _session(self) -> Any:
        """One for all clients: each reads botocore's list of endpoints, a fifth of a second."""
        return boto3.Session(region_name=self.environment.spec.region)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of Terraform and the AWS CLI.

        For an emulated AWS they contain dummy keys, so that no real key is ever sent to it; its account is the one of a key of 12
        digits.
        """
        if self.environment.spec.endpoints is None:
            return {**self._base, "AWS_REGION": self.environment.spec.region}
        return {**{name: value for name, value in self._base.items() if not name.startswith("AWS_")}, **self._emulated()}

    def client(self, service: str, region: str | None = None) -> Any:
        """Return a boto3 client.

        Args:
            service: boto3's name of the service.
            region: of the service; None: the environment's.

        Raises:
            CredentialsMissing: TOOL-030.
        """
        spec = self.environment.spec
        with translated(f"{service} in {spec.region}"), self._making:
            session = self._session
            if spec.endpoints is None:
                return session.client(service, region_name=region, config=self._config)
            keys = {"aws_access_key_id": spec.account, "aws_secret_access_key": "emulated"}
            return session.client(service, region_name=region, endpoint_url=spec.endpoints.of(service), config=self._config, **keys)

    def s3_keys(self) -> tuple[str, str, str | None]:
        """Access key, secret key and session token for what is no client of boto3; the token is None for keys of a user.

        Raises:
            CredentialsMissing: TOOL-030.
        """
        spec = self.environment.spec
        if spec.endpoints is not None:
            return spec.account, "emulated", None
        with translated(f"s3 in {spec.region}"):
            found = self._session.get_credentials()
            keys = None if found is None else found.get_frozen_credentials()
            if keys is None or keys.access_key is None or keys.secret_key is None:
                raise NoCredentialsError
            return keys.access_key, keys.secret_key, keys.token

    def caller(self) -> Caller:
        """Return the identity of this machine's credentials.

        Raises:
            CredentialsMissing: TOOL-030.
            CredentialsRefused: DEP-001.
            AwsRefused: RUN-020.
            AwsNotReached: RUN-021.
        """
        with translated(self._place()):
            said = self.client("sts").get_caller_identity()
        return Caller(said["Account"], said["Arn"])

    def check_account(self) -> Caller:
        """Return the identity of this machine's credentials, which must be in the environment's account.

        Raises:
            OtherAccount: DEP-002.
            PenstockError: see `caller`.
        """
        caller = self.caller()
        if caller.account != self.environment.spec.account:
            need = f"credentials of {self.environment.spec.account}, the account of environment {self.environment.name}"
            fix = "set AWS_PROFILE to a profile of that account, or correct spec.account"
            raise OtherAccount(path="AWS", given=f"{caller.account} ({caller.arn})", need=need, fix=fix)
        return caller

    def _place(self) -> str:
        endpoints = self.environment.spec.endpoints
        return endpoints.of("sts") if endpoints else f"AWS in {self.environment.spec.region}"

    def _emulated(self) -> dict[str, str]:
        spec = self.environment.spec
        return {
            "AWS_ACCESS_KEY_ID": spec.account,
            "AWS_SECRET_ACCESS_KEY": "emulated",
            "AWS_REGION": spec.region,
            "AWS_DEFAULT_REGION": spec.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Convert boto3's exceptions into coded errors.

    Args:
        place: what was requested, for the message.

    Raises:
        CredentialsMissing: TOOL-030.
        CredentialsRefused: DEP-001.
        AwsRefused: RUN-020.
        AwsNotReached: RUN-021.
    """
    try:
        yield
    except NO_CREDENTIALS as error:
        raise CredentialsMissing(path="AWS", given=one_line(error), need="AWS credentials", fix=f"{SIGN_IN}, and retry") from None
    except ClientError as error:
        raise _refused(error, place) from None
    except BotoCoreError as error:
        fix = "check that this machine can reach it and that it responds, and retry"
        raise AwsNotReached(path=place, given=one_line(error), need="a response", fix=fix) from None


def code_of(error: ClientError) -> str:
    """Return the error code from AWS."""
    return str(error.response.get("Error", {}).get("Code", ""))


def if_there(ask: Callable[[], Any]) -> Any:
    """An answer of AWS; None if what is asked for does not exist."""
    try:
        return ask()
    except ClientError as error:
        if code_of(error) in _ABSENT:
            return None
        raise


def _refused(error: ClientError, place: str) -> CredentialsRefused | AwsRefused:
    code, said = code_of(error), error.response.get("Error", {}).get("Message", "")
    given = f"{code}: {said}"
    if code in _EXPIRED:
        return CredentialsRefused(path="AWS", given=given, need="unexpired credentials", fix=f"{SIGN_IN} again, and retry")
    if code in _WRONG:
        return CredentialsRefused(path="AWS", given=given, need="valid credentials", fix=f"{SIGN_IN}, and retry")
    need = "permission for this action, in a region enabled for the account"
    return AwsRefused(path=f"{error.operation_name} at {place}", given=given, need=need, fix="check the IAM policies of the caller")


def one_line(error: Exception) -> str:
    """Return the error's message in one line."""
    return " ".join(str(error).split())
