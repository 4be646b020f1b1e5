"""An AWS on this machine: moto on a loopback port, in a process that ends with this one."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.scripts.errors import EmulatorDied, EmulatorNotReady, PortInUse
from penstock.scripts.layout import python_path
from penstock.scripts.process.supervised import SupervisedProcess

# Importing moto takes one to two seconds on an idle machine.
START_LIMIT_S = 120
# Polling interval of the log while the emulator starts.
POLL_S = 0.02

# AWS managed policies exist as on AWS; no request comes from a browser of another origin.
_SETTINGS = {"MOTO_IAM_LOAD_MANAGED_POLICIES": "true", "MOTO_DISABLE_GLOBAL_CORS": "true"}
# Read by `penstock.scripts.emulation.msk.clusters` and `penstock.scripts.emulation.neighbours`, which import moto and therefore cannot be
# imported here.
_BROKERS, _NEIGHBOURS = "PENSTOCK_EMULATED_BROKERS", "PENSTOCK_EMULATED_NEIGHBOURS"
_READY = re.compile(r"^penstock emulated aws ready on port (\d+)$", re.MULTILINE)
_PORT_IN_USE = re.compile(r"^penstock emulated aws cannot have port \d+: (.*)$", re.MULTILINE)


class EmulatedAws:
    """A running emulated AWS; its state is lost when it ends.

    Args:
        log: file for the emulator's output.
        port: a loopback port, 1 to 65535, or 0 for a free one.
        port_option: the option that set the port, for the error message.
        account: the account's 12 digits.
        region: the region in `environment`; the emulator serves all regions.
        brokers: bootstrap servers that MSK returns for every cluster, ``host:port``, comma-separated; by default names in MSK's format
            that do not resolve.
        neighbours: service -> URL, of the networks, roles, keys and logs that EKS and MSK use; those that are not named are its own.
        start_limit_s: start timeout in seconds.
    """

    def __init__(
        self,
        *,
        log: Path,
        port: int = 0,
        port_option: str = "--aws-port",
        account: str = "000000000000",
        region: str = "us-east-1",
        brokers: str | None = None,
        neighbours: Mapping[str, str] | None = None,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        self.log = log
        self.region = region
        self._asked_port = port
        self._port_option = port_option
        self._start_limit_s = start_limit_s
        self._port: int | None = None
        self._log_start = 0
        self._supervised = SupervisedProcess(
            [sys.executable, "-m", "penstock.scripts.emulation.moto_server", str(port)],
            env={**_own_environment(brokers, neighbours), "MOTO_ACCOUNT_ID": account},
            log=log,
            grace_s=5,
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        if self._port is None:
            raise ValueError("the emulated AWS is not running")
        return self._port

    @property
    def endpoint(self) -> str:
        """URL of all services."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the emulator."""
        return self._supervised.pid

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return environment variables that direct boto3, the AWS CLI and Terraform to the emulator only.

        Args:
            base: environment to extend, whose AWS variables are dropped; empty by default.

        Returns:
            A new environment with dummy keys; the user's profiles and files are not read.
        """
        own = {
            "AWS_ACCESS_KEY_ID": "emulated",
            "AWS_SECRET_ACCESS_KEY": "emulated",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
        return {**_without(base or {}, "AWS_"), **own}

    def start(self) -> Self:
        """Start it and wait until it listens.

        Raises:
            PortInUse: RUN-002.
            EmulatorDied: RUN-003, with the end of its log.
            EmulatorNotReady: RUN-004.
        """
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._supervised.start()
        try:
            self._port = self._wait_for_port()
        except BaseException:
            self.stop()
            raise
        return self

    def alive(self) -> bool:
        """Whether it is still running."""
        return self._supervised.alive()

    def check(self) -> None:
        """Raise if it has exited.

        Raises:
            EmulatorDied: RUN-003, with the end of its log.
        """
        if not self.alive():
            given = f"exit code {self._supervised.returncode}; the end of {self.log}:\n{_indented(self._supervised.tail())}"
            raise EmulatorDied(path="moto", given=given, need="an emulator that runs until it is stopped", fix="check its log, and retry")

    def stop(self) -> None:
        """Stop it; a second call does nothing."""
        self._supervised.stop()

    def _wait_for_port(self) -> int:
        until_s = time.monotonic() + self._start_limit_s
        while time.monotonic() < until_s:
            alive = self.alive()
            said = self._said()
            if ready := _READY.search(said):
                return int(ready[1])
            if refused := _PORT_IN_USE.search(said):
                fix = f"stop the process listening on it, or choose another port with {self._port_option}; 0 selects a free one"
                raise PortInUse(path=f"127.0.0.1:{self._asked_port}", given=refused[1], need="a free port for the emulated AWS", fix=fix)
            if not alive:
                self.check()
            time.sleep(POLL_S)
        need = f"accepting connections within {self._start_limit_s:g} s"
        raise EmulatorNotReady(path="moto", given=self._supervised.tail() or "an empty log", need=need, fix=f"check {self.log}, and retry")

    def _said(self) -> str:
        """The output of this emulator; the log may also contain an earlier one's."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode("utf-8", "replace")


def _own_environment(brokers: str | None, neighbours: Mapping[str, str] | None) -> dict[str, str]:
    """Environment variables of the emulator; its settings come only from the arguments."""
    settings = {_BROKERS: brokers, _NEIGHBOURS: json.dumps(dict(neighbours)) if neighbours else None}
    return {
        **_without(os.environ, "AWS_", "MOTO_", *settings),
        **_SETTINGS,
        **{name: value for name, value in settings.items() if value},
        "PYTHONPATH": python_path(),
    }


def _without(base: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    return {name: value for name, value in base.items() if not name.startswith(prefixes)}


def _indented(text: str) -> str:
    return "\n".join(f"       {line}" for line in text.splitlines()) or "       (empty)"
