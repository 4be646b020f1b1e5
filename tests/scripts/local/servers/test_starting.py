"""The servers of a job's connections: started together, filled by the spec's functions, ended together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml

from penstock.jobs.errors import MissingField
from penstock.jobs.spec import SpecFile, load
from penstock.scripts.local.servers.errors import LocalServerNotFilled
from penstock.scripts.local.servers.redis_server import RedisServer
from penstock.scripts.local.servers.starting import LocalServers, without_server

FUNCTIONS = """
def accounts():
    return ["CREATE TABLE accounts (id int PRIMARY KEY, owner text)", "INSERT INTO accounts VALUES (1, 'ann')"]

def broken():
    return "CREATE TABLE"

def campaigns():
    return {"campaign:7": {"name": "hats", "budget": 5}}

def credit(method, path, headers, body):
    return 201, body

def words():
    return ["one two", "three"]
"""
SPEC: dict[str, Any] = {
    "app": "penstock.jobs.apps.user_credit",
    "parallelism": 1,
    "executor": {"memory": "2g"},
    "sources": {"words": {"socket": {"connection": "words"}}},
    "connections": {"bank": "postgres", "ads": "redis", "credit": "http"},
}


def spec(folder: Path, functions: str, **connections: dict[str, str]) -> SpecFile:
    """A spec whose functions lie beside it, in a module of their own name."""
    (folder / f"{functions}.py").write_text(FUNCTIONS, encoding="utf-8")
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "bank"}}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump({**document, "spec": {**SPEC, "local": {"connections": connections}}}), encoding="utf-8")
    return load(path)


@pytest.mark.emulated
def test_every_connection_gets_its_server_with_what_the_spec_fills_it_with(tmp_path: Path) -> None:
    job = spec(
        tmp_path,
        "filling",
        bank={"postgres": "filling:accounts"},
        ads={"redis": "filling:campaigns"},
        credit={"http": "filling:credit"},
        words={"socket": "filling:words"},
    )
    assert without_server(job) == []
    with LocalServers(job, [tmp_path], tmp_path / "servers") as servers:
        servers.check()
        with psycopg.connect(servers.urls["bank"]) as connection:
            assert connection.execute("SELECT * FROM accounts").fetchall() == [(1, "ann")]
        ads = servers["ads"]
        assert isinstance(ads, RedisServer) and ads.hashes() == {"campaign:7": {"name": "hats", "budget": "5"}}
        answer = httpx.post(servers.urls["credit"], content=b"5")
        assert (answer.status_code, answer.content) == (201, b"5")
        assert servers.lines == {"words": ["one two", "three"]}
        assert {"postgres for bank", "socket for words"} <= {part.partition(" on port")[0] for part in servers.said().split(", ")}
    assert [path for path in (tmp_path / "servers").iterdir() if path.is_dir()] == []


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("function", "need"),
    [
        ("spoiling:broken", "SQL that PostgreSQL accepts"),
        ("spoiling:nothing", "AttributeError: module 'spoiling' has no attribute 'nothing'"),
        ("spoiling:FUNCTIONS", "has no attribute 'FUNCTIONS'"),
        ("spoilt:accounts", "ModuleNotFoundError: No module named 'spoilt'"),
    ],
)
def test_what_a_server_can_t_be_filled_with_is_told_with_the_spec_s_line(function: str, need: str, tmp_path: Path) -> None:
    job = spec(tmp_path, "spoiling", bank={"postgres": function})
    with pytest.raises(LocalServerNotFilled) as raised, LocalServers(job, [tmp_path], tmp_path / "servers"):
        pass
    assert need in raised.value.need
    assert raised.value.at is not None and raised.value.at.line
    assert [path for path in (tmp_path / "servers").iterdir() if path.is_dir()] == []


def test_a_connection_without_a_server_is_told_before_anything_starts(tmp_path: Path) -> None:
    result = without_server(spec(tmp_path, "lacking", bank={"postgres": "lacking:accounts"}))
    assert [(type(fault), fault.path) for fault in result] == [
        (MissingField, f"spec.local.connections.{name}") for name in ("ads", "credit", "words")
    ]
    assert result[0].fix == "connections: {ads: {redis: module:function}} below spec.local"
    assert all(fault.at is not None and fault.at.line for fault in result)
