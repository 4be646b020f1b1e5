"""Connections of an environment: the address of a database, never the job's credentials."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from penstock.infra.parts.connections import Connection

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:bank-AbCdEf"


@pytest.mark.parametrize(
    ("given", "port"),
    [
        ({"kind": "postgres", "url": "postgresql://bank.example/accounts?sslmode=verify-full", "secret": SECRET}, 5432),
        ({"kind": "postgres", "url": "postgresql://bank.example:6432/accounts", "plaintext": True}, 6432),
        ({"kind": "redis", "url": "rediss://cache.example/0"}, 6379),
        ({"kind": "http", "url": "https://alerts.example/post"}, 443),
        ({"kind": "http", "secret": SECRET}, 443),
        ({"kind": "socket", "url": "tcp://lines.example:9999", "plaintext": True}, 9999),
    ],
)
def test_a_connection_says_by_which_port_it_is_reached(given: dict[str, Any], port: int) -> None:
    assert Connection.model_validate(given).port == port


@pytest.mark.parametrize(
    ("given", "need"),
    [
        ({"kind": "postgres"}, "a url; only http connections"),
        ({"kind": "postgres", "secret": SECRET}, "a url; only http connections"),
        ({"kind": "http"}, "a url; only http connections"),
        ({"kind": "postgres", "url": "mysql://bank.example/x"}, "starting with postgresql:// or postgres:// and containing a host"),
        ({"kind": "redis", "url": "rediss:///0"}, "and containing a host"),
        ({"kind": "postgres", "url": "postgresql://me:secret@bank.example/x?sslmode=require"}, "without user and password"),
        ({"kind": "postgres", "url": "postgresql://bank.example/x?sslmode=require&password=secret"}, "without user and password"),
        ({"kind": "postgres", "url": "postgresql://bank.example/x"}, "sslmode=require"),
        ({"kind": "postgres", "url": "postgresql://bank.example/x?sslmode=prefer"}, "sslmode=require"),
        ({"kind": "redis", "url": "redis://cache.example/0"}, "rediss://"),
        ({"kind": "http", "url": "http://alerts.example"}, "https://"),
        ({"kind": "socket", "url": "tcp://lines.example", "plaintext": True}, "a url with a port"),
        ({"kind": "redis", "url": "rediss://cache.example/0", "key": "arn:aws:kms:us-east-1:111122223333:key/1"}, "together with secret"),
        ({"kind": "redis", "url": "rediss://cache.example/0", "secret": "bank"}, "String should match pattern"),
    ],
)
def test_what_would_send_credentials_in_the_open_or_keep_them_in_a_file_is_refused(given: dict[str, Any], need: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Connection.model_validate(given)
    assert need in str(raised.value)
