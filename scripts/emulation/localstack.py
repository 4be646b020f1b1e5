"""LocalStack on this machine, in host mode and without Docker, in a process that ends with this one.

4.14.0 is the last release that starts without a token. Its packages and its Python version (3.13) differ from Penstock's: it has a
separate environment, created on first use. It has no EKS, MSK and ECR: those are still served by
`penstock.scripts.emulation.emulated_aws`, which then uses the networks, roles and keys of this one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.scripts.emulation.errors import LocalStackNotReached, OldLocalStack
from penstock.scripts.emulation.localstack_python import NAME, VARIABLE, find
from penstock.scripts.errors import EmulatorDied, EmulatorNotReady, MissingTool
from penstock.scripts.installation.tool_environment import ToolEnvironment
from penstock.scripts.layout import ROOT
from penstock.scripts.process.supervised import SupervisedProcess

# Endpoint of the user's own LocalStack: one in Docker, or of a later release with a token.
ENDPOINT_VARIABLE = "LOCALSTACK_ENDPOINT"
# Services of the free edition that the stacks use, by their names in Terraform's provider.
# CloudWatch is not included: it loses the tags of an alarm, so that every plan would add them.
SERVICES = ("ec2", "events", "iam", "kms", "logs", "s3", "sns", "sqs", "sts")
# The last release that starts without a token; what the stacks need of later ones is the same.
OLDEST = "4.14.0"
# LocalStack's EC2 is moto's, with faults that Penstock corrects in a LocalStack that it starts and in its own moto, and not elsewhere.
_FAULTY_ELSEWHERE = frozenset({"ec2"})
# Its imports take 3 s on an idle machine.
START_LIMIT_S = 180
ASK_LIMIT_S = 10
POLL_S = 0.1

_ELSEWHERE = tuple(service for service in SERVICES if service not in _FAULTY_ELSEWHERE)
_READY = re.compile(r"^Ready\.$", re.MULTILINE)
_SETTINGS = {
    # No telemetry, no certificate download, and no DNS server.
    "DISABLE_EVENTS": "1",
    "SKIP_SSL_CERT_DOWNLOAD": "1",
    "DNS_ADDRESS": "0",
}

Progress = Callable[[str], None]


class LocalStack:
    """A running LocalStack, started here, or the user's own if LOCALSTACK_ENDPOINT is set.

    Args:
        folder: folder of its data, removed at the end; created if missing.
        log: file for its output.
        progress: called with the output of its installation.
        start_limit_s: start timeout in seconds, without its installation.
        environment: environment variables with the user's own endpoint and the locations of Python interpreters.
    """

    def __init__(
        self,
        *,
        folder: Path,
        log: Path,
        progress: Progress = lambda said: None,
        start_limit_s: float = START_LIMIT_S,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.log = log
        self._folder = folder.absolute()
        self._progress = progress
        self._start_limit_s = start_limit_s
        self._environment = environment
        self._endpoint: str | None = None
        self._supervised: SupervisedProcess | None = None
        self._log_start = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """URL of all its services."""
        if self._endpoint is None:
            raise ValueError("LocalStack has not been started")
        return self._endpoint

    @property
    def services(self) -> dict[str, str]:
        """URL of each of its services that the stacks use, for `Environment.at`; of the user's own all but EC2."""
        return dict.fromkeys(SERVICES if self._supervised else _ELSEWHERE, self.endpoint)

    def start(self) -> Self:
        """Start it, or check that the user's own responds.

        Raises:
            PenstockError: TOOL-001, TOOL-024, RUN-001, RUN-003, RUN-004, EMU-001, EMU-002.
        """
        if named := self._environment.get(ENDPOINT_VARIABLE):
            self._endpoint = _checked(named.rstrip("/"), _ELSEWHERE)
            return self
        python = ToolEnvironment("localstack", python=_python(self._environment)).ensure(self._progress) / "python"
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        port = _free_port()
        command = [str(python), "-m", "penstock.scripts.emulation.localstack_main"]
        self._supervised = SupervisedProcess(command, env=self._variables(port), log=self.log, remove=self._folder, grace_s=10)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._supervised.start()
        try:
            self._wait(self._supervised)
            self._endpoint = _checked(f"http://127.0.0.1:{port}", SERVICES)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop what was started here; a second call does nothing."""
        if self._supervised is not None:
            self._supervised.stop()

    def _variables(self, port: int) -> dict[str, str]:
        """All of its environment variables: none of the user's AWS variables, and only its own folder."""
        kept = {name: self._environment[name] for name in ("PATH", "LANG", "TMPDIR") if name in self._environment}
        own = {
            "GATEWAY_LISTEN": f"127.0.0.1:{port}",
            "FILESYSTEM_ROOT": str(self._folder),
            "HOME": str(self._folder),
            "PYTHONPATH": str(ROOT),
        }
        return {**kept, **_SETTINGS, **own}

    def _wait(self, supervised: SupervisedProcess) -> None:
        until_s = time.monotonic() + self._start_limit_s
        while time.monotonic() < until_s:
            alive = supervised.alive()
            if _READY.search(self._said()):
                return
            if not alive:
                given = f"exit code {supervised.returncode}; the end of {self.log}:\n{supervised.tail()}"
                fix = "check its log, and retry"
                raise EmulatorDied(path="localstack", given=given, need="an emulator that runs until it is stopped", fix=fix)
            time.sleep(POLL_S)
        given = supervised.tail() or "an empty log"
        raise EmulatorNotReady(path="localstack", given=given, need=f"ready within {self._start_limit_s:g} s", fix=f"check {self.log}")

    def _said(self) -> str:
        """The output of this LocalStack; the log may also contain an earlier one's."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode("utf-8", "replace")


def _python(environment: Mapping[str, str]) -> str:
    python = find(environment)
    if python is None:
        need = "Python 3.13, the only version supported by LocalStack's host mode"
        fix = f"install it, or set {VARIABLE} to its path; or run LocalStack yourself and set {ENDPOINT_VARIABLE} to its URL"
        raise MissingTool(path=NAME, need=need, fix=fix)
    return python


def _checked(endpoint: str, services: Sequence[str]) -> str:
    """Return the endpoint after checking that it is a LocalStack with these services."""
    try:
        with urllib.request.urlopen(f"{endpoint}/_localstack/health", timeout=ASK_LIMIT_S) as answer:
            said: dict[str, Any] = json.load(answer)
        states, version = dict(said["services"]), str(said["version"])
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError) as error:
        raise _not_reached(endpoint, f"{type(error).__name__}: {error}") from error
    if _numbers(version) < _numbers(OLDEST):
        fix = f"start another, for example with: docker run --rm -p 4566:4566 localstack/localstack:{OLDEST}"
        raise OldLocalStack(path=endpoint, given=f"LocalStack {version}", need=f"{OLDEST} or later", fix=fix)
    missing = [service for service in services if states.get(service) not in ("available", "running", "starting", "initialized")]
    if missing:
        raise _not_reached(endpoint, f"missing services: {', '.join(missing)}")
    return endpoint


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a release, without a suffix such as dev1."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _not_reached(endpoint: str, given: str) -> LocalStackNotReached:
    need = f"a LocalStack with {', '.join(SERVICES)}"
    fix = f"start it, for example with 'localstack start', or unset {ENDPOINT_VARIABLE} to have one started"
    return LocalStackNotReached(path=endpoint, given=given, need=need, fix=fix)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
