"""The servers that stand for a job's connections: real ones, gone without a trace when they end."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import redis

from penstock.scripts.local.servers.errors import LocalServerDied, LocalServerNotFilled
from penstock.scripts.local.servers.http_endpoint import HttpEndpoint
from penstock.scripts.local.servers.local_server import LocalServer
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.scripts.local.servers.redis_server import RedisServer
from penstock.scripts.local.servers.socket_server import SocketServer

pytestmark = pytest.mark.emulated

FUNCTIONS = """
def credit(method, path, headers, body):
    if path == "/broken":
        raise RuntimeError("no")
    return 200, {"method": method, "path": path, "bytes": len(body)}

def words():
    yield "one two"
    yield "three"
"""


@pytest.fixture
def app_path(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "served.py").write_text(FUNCTIONS, encoding="utf-8")
    return folder


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    with PostgresServer(tmp_path / "postgres") as server:
        yield server


def test_postgres_keeps_what_was_committed_when_it_is_killed_and_started_again(postgres: PostgresServer) -> None:
    url = postgres.url
    postgres.run("CREATE TABLE accounts (id int PRIMARY KEY, owner text); INSERT INTO accounts VALUES (1, '50% o''clock')")
    with psycopg.connect(url):
        postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    postgres.start()
    assert postgres.url == url
    assert postgres.rows("accounts") == postgres.rows("public.accounts") == [{"id": 1, "owner": "50% o'clock"}]


def test_postgres_lets_nobody_in_without_its_password(postgres: PostgresServer) -> None:
    password = postgres.url.split(":")[2].partition("@")[0]
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url.replace(password, "guessed"))
    if sys.platform == "linux":
        assert password not in Path(f"/proc/{postgres.pid}/cmdline").read_text(encoding="utf-8")
    assert password not in postgres.log.read_text(encoding="utf-8")


def test_sql_that_postgres_refuses_is_told_in_its_words_and_leaves_nothing(postgres: PostgresServer) -> None:
    with pytest.raises(LocalServerNotFilled, match='syntax error at or near "CREAT"'):
        postgres.run("CREATE TABLE one (id int); CREAT TABLE two (id int)")
    with pytest.raises(psycopg.errors.UndefinedTable):
        postgres.rows("one")


def test_redis_keeps_what_it_has_answered_for_when_it_is_killed_and_started_again(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server:
        url = server.url
        server.fill({"campaign:1": {"name": "blue shoes"}, "campaign:2": {"name": "hats"}, "other": {"a": "b"}})
        server.kill()
        server.start()
        assert server.url == url
        assert server.hashes("campaign:*") == {"campaign:1": {"name": "blue shoes"}, "campaign:2": {"name": "hats"}}
        with pytest.raises(redis.AuthenticationError), redis.Redis(port=server.port) as nobody:
            nobody.ping()


def test_an_endpoint_answers_by_its_function_and_keeps_what_it_was_asked(tmp_path: Path, app_path: Path) -> None:
    with HttpEndpoint(tmp_path / "http", "served:credit", [app_path]) as server:
        answer = httpx.post(f"{server.url}/users?id=1", content=b"abc", headers={"Idempotency-Key": "t-0-5"})
        assert answer.json() == {"method": "POST", "path": "/users?id=1", "bytes": 3}
        assert answer.headers["content-type"] == "application/json"
        assert httpx.get(f"{server.url}/broken").status_code == 500
        asked, broken = server.requests()
    assert (asked.method, asked.path, asked.body, asked.status) == ("POST", "/users?id=1", "abc", 200)
    assert asked.headers["idempotency-key"] == "t-0-5"
    assert (broken.path, broken.status) == ("/broken", 500)
    assert "RuntimeError: no" in server.log.read_text(encoding="utf-8")


def test_a_socket_server_sends_every_client_all_lines_and_stays_open(tmp_path: Path, app_path: Path) -> None:
    with SocketServer(tmp_path / "socket", "served:words", [app_path]) as server:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
                lines = client.makefile("rb")
                assert [lines.readline(), lines.readline()] == [b"one two\n", b"three\n"]
                client.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    client.recv(1)


@pytest.mark.parametrize("kind", [PostgresServer, RedisServer])
def test_a_server_takes_its_folder_with_it_and_says_when_it_died(kind: type[LocalServer], tmp_path: Path) -> None:
    with kind(tmp_path / "server") as server:
        number = server.pid
        server.check()
        server.kill()
        with pytest.raises(LocalServerDied, match="code -9"):
            server.check()
        assert server.folder.exists()
    assert not server.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_function_that_is_not_there_is_told_from_the_log(tmp_path: Path) -> None:
    with pytest.raises(LocalServerDied, match="No module named 'nowhere'"):
        HttpEndpoint(tmp_path / "http", "nowhere:function").start()
