"""Connections: references of a spec, definitions of the environment, and the parts that may be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.errors import Contradiction
from penstock.jobs.spec import SpecFile, connection_names, load
from penstock.jobs.spec.connection_addresses import check, kind_of, port_of, redacted, the_url
from penstock.jobs.spec.errors import ConnectionOfAnotherKind, UnknownConnection
from penstock.sizing.errors import Faults, PenstockError

GIVEN = {
    "bank": "postgresql://me:secret@bank.example/accounts",
    "cache": "rediss://:secret@cache.example:6380/0",
    "alerts": "https://alerts.example/secret",
    "lines": "tcp://lines.example:9999",
    "credit": "http://credit.example",
}


def spec(folder: Path, **changes: Any) -> SpecFile:
    document: dict[str, Any] = {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "bank"},
        "spec": {
            "app": "penstock.jobs.apps.user_credit",
            "parallelism": 1,
            "executor": {"memory": "2g"},
            "sources": {"words": {"socket": {"connection": "lines"}}},
            "tables": {"accounts": {"postgres": {"connection": "bank", "table": "a", "key": ["id"], "columns": ["owner"]}}},
            "sinks": {
                "out": {"postgres": {"connection": "bank", "table": "b", "key": ["id"]}},
                "now": {"redis": {"connection": "cache", "key": ["id"]}},
                "errors": {"webhook": {"connection": "alerts"}},
            },
            "connections": {"credit": "http"},
            **changes,
        },
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load(path)


def test_a_spec_needs_the_connections_of_its_sources_tables_sinks_and_of_its_app(tmp_path: Path) -> None:
    job_spec = spec(tmp_path)
    assert connection_names(job_spec.job.spec) == ["alerts", "bank", "cache", "credit", "lines"]
    check(job_spec, GIVEN)


def test_all_missing_connections_of_an_environment_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(Faults) as raised:
        check(spec(tmp_path), {name: url for name, url in GIVEN.items() if name != "bank"} | {"cache": GIVEN["alerts"]})
    errors = {(type(fault), fault.path, fault.given) for fault in raised.value.errors}
    assert errors == {
        (UnknownConnection, "spec.tables.accounts.postgres.connection", "bank"),
        (UnknownConnection, "spec.sinks.out.postgres.connection", "bank"),
        (ConnectionOfAnotherKind, "spec.sinks.now.redis.connection", "cache"),
    }
    assert all(fault.at is not None and fault.at.line for fault in raised.value.errors)
    assert not any("secret" in fault.render() for fault in raised.value.errors)


def test_a_url_shows_neither_credentials_nor_path() -> None:
    assert [redacted(url) for url in GIVEN.values()] == [
        "postgresql://bank.example",
        "rediss://cache.example:6380",
        "https://alerts.example",
        "tcp://lines.example:9999",
        "http://credit.example",
    ]
    assert [kind_of(url) for url in GIVEN.values()] == ["postgres", "redis", "http", "socket", "http"]
    assert [port_of(url) for url in GIVEN.values()] == [5432, 6380, 443, 9999, 80]
    assert (kind_of("mysql://db/x"), port_of("mysql://db/x")) == (None, None)
    with pytest.raises(ConnectionOfAnotherKind, match=r"starting with redis:// or rediss://; it is https://alerts\.example"):
        the_url(GIVEN, "alerts", "redis", "an app")


@pytest.mark.parametrize(
    ("changes", "path", "need"),
    [
        (
            {"connections": {"bank": "http"}},
            "spec.tables.accounts.postgres.connection",
            "spec.connections.bank uses it as http, this as postgres",
        ),
        (
            {"local": {"connections": {"bank": {"redis": "m:f"}}}},
            "spec.local.connections.bank",
            "postgres, as spec.tables.accounts.postgres.connection uses it",
        ),
        (
            {"local": {"connections": {"bonk": {"postgres": "m:f"}}}},
            "spec.local.connections.bonk",
            "a connection that the job uses: alerts, bank, cache, credit, lines",
        ),
        (
            {"local": {"connections": {"bank": {"postgres": "m:f", "redis": "m:f"}}}},
            "spec.local.connections.bank",
            "postgres and redis is given",
        ),
    ],
)
def test_a_duplicate_name_is_rejected(changes: dict[str, Any], path: str, need: str, tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        spec(tmp_path, **changes)
    fault = raised.value.errors[0]
    assert fault.path == path
    assert need in fault.need
    assert isinstance(fault, Contradiction) or "given" in need
