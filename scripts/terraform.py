"""Terraform on a synthesized stack: each call with a time limit, with progress, and with Terraform's own words where it fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.errors import MissingTool, ProviderNotFound, TerraformFailed, TerraformStopped, TerraformTimeout
from scripts.leash import Leash
from scripts.provider_mirror import CONFIGURATION_VARIABLE, PROVIDER, VARIABLE, Search, find
from sizing.errors import raise_all

# The registry's archive of the provider has 150 MB.
INIT_LIMIT_S = 900
# A backend that answers nothing is polled by the provider for many minutes, a resource at a time.
APPLY_LIMIT_S = 900
PLAN_LIMIT_S = 300
OUTPUT_LIMIT_S = 60
# Asked to stop, Terraform waits for what the provider has begun, and writes its state.
STOP_GRACE_S = 30
POLL_S = 0.05

# Source: Terraform's documentation, "plan -detailed-exitcode".
_PLAN_HAS_CHANGES = 2
_NO_PROVIDER = ("Failed to query available provider packages", "Failed to install provider", "Inconsistent dependency lock file")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Change:
    """What was done to one resource.

    Args:
        address: the resource's, as ``aws_s3_bucket.output``.
        action: create, update or delete.
        duration_s: in whole seconds.
    """

    address: str
    action: str
    duration_s: int


@dataclass(frozen=True)
class Applied:
    """What an apply or a destroy did.

    Args:
        changes: the resources, in the order in which they were done.
        outputs: the stack's outputs by name; empty after a destroy.
        duration_s: of the whole call, with a first init.
    """

    changes: tuple[Change, ...]
    outputs: Mapping[str, Any]
    duration_s: float

    def count(self, action: str) -> int:
        """How many resources an action was done to."""
        return sum(change.action == action for change in self.changes)

    def __str__(self) -> str:
        words = (("create", "created"), ("update", "changed"), ("delete", "destroyed"))
        done = ", ".join(f"{self.count(action)} {word}" for action, word in words if self.count(action))
        return f"{done or 'nothing to do'} in {self.duration_s:.0f} s"


class Terraform:
    """One stack.

    A call that is cut short, by its limit, by `stop` or by the end of this process, is one that Terraform was asked to end: it writes its
    state. The whole of what it said is in ``terraform-<call>.log`` in the stack's folder.

    Args:
        folder: the stack's, with its cdk.tf.json.
        environment: the variables that Terraform and the provider run with; credentials are among them.
        limit_s: how long any one call may take; by default each has a limit of its own.
    """

    def __init__(self, folder: Path, *, environment: Mapping[str, str], limit_s: float | None = None) -> None:
        self.folder = folder.absolute()
        self._asked_environment = dict(environment)
        self._limit_s = limit_s
        self._search: Search | None = None
        self._stop = threading.Event()
        self._running = threading.Lock()

    def init(self) -> None:
        """Gets the provider ready; the other calls do it by themselves where it has not been done.

        Raises:
            ProviderNotFound: RUN-005, with the places where it was looked for.
            PenstockError: TOOL-001, RUN-007 to RUN-009.
        """
        code, log = self._run("init", ["-no-color"], INIT_LIMIT_S)
        if code == 0:
            return
        if any(words in _text(log) for words in _NO_PROVIDER):
            raise self._no_provider()
        raise self._failure("init", log)

    def plan(self) -> bool:
        """Whether the stack differs from what is applied.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        self._ensure_init()
        code, log = self._run("plan", ["-json", "-detailed-exitcode"], PLAN_LIMIT_S)
        if code not in (0, _PLAN_HAS_CHANGES):
            raise_all(self._failures("plan", log))
        return code == _PLAN_HAS_CHANGES

    def apply(self, progress: Progress = lambda address: None) -> Applied:
        """Makes the stack what its folder says.

        Args:
            progress: called with the address of each resource that is done, in the thread of this call.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        return self._change("apply", progress)

    def destroy(self, progress: Progress = lambda address: None) -> Applied:
        """Destroys all that the stack's state holds.

        Args:
            progress: as of `apply`.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        return self._change("destroy", progress)

    def output(self) -> dict[str, Any]:
        """The outputs of what is applied, by name.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        self._ensure_init()
        code, log = self._run("output", ["-json", "-no-color"], OUTPUT_LIMIT_S)
        if code != 0:
            raise self._failure("output", log)
        said = _text(log)
        # Warnings go before.
        outputs, _ = json.JSONDecoder().raw_decode(said, said.index("{"))
        return {name: output["value"] for name, output in outputs.items()}

    def stop(self) -> None:
        """Ends the call that runs in another thread, which then raises RUN-009, and waits for its end. No call runs after it."""
        self._stop.set()
        with self._running:
            pass

    def _change(self, verb: str, progress: Progress) -> Applied:
        started_s = time.monotonic()
        self._ensure_init()
        changes: list[Change] = []
        outputs: dict[str, Any] = {}

        def take(event: Mapping[str, Any]) -> None:
            if event.get("type") == "apply_complete" and event["hook"]["action"] != "read":
                hook = event["hook"]
                changes.append(Change(hook["resource"]["addr"], hook["action"], int(hook.get("elapsed_seconds", 0))))
                progress(changes[-1].address)
            elif event.get("type") == "outputs":
                outputs.update({name: output["value"] for name, output in event["outputs"].items() if "value" in output})

        code, log = self._run(verb, ["-json", "-auto-approve"], APPLY_LIMIT_S, take)
        if code != 0:
            raise_all(self._failures(verb, log))
        return Applied(tuple(changes), outputs if verb == "apply" else {}, time.monotonic() - started_s)

    def _ensure_init(self) -> None:
        if not (self.folder / ".terraform.lock.hcl").exists():
            self.init()

    def _run(
        self, verb: str, options: list[str], limit_s: float, take: Callable[[Mapping[str, Any]], None] = lambda event: None
    ) -> tuple[int, Path]:
        """Runs Terraform to its end: its exit code and its log."""
        if self._stop.is_set():
            raise self._stopped(verb)
        environment = self._environment()
        log = self.folder / f"terraform-{verb}.log"
        log.unlink(missing_ok=True)
        limit_s = self._limit_s or limit_s
        options = options if verb == "output" else ["-input=false", *options]
        # Terraform's provider plugins ignore SIGINT and leave it to Terraform to end them in order; SIGTERM would end them at once.
        command = ["terraform", verb, *options]
        leash = Leash(command, env=environment, log=log, cwd=self.folder, grace_s=STOP_GRACE_S, ask=signal.SIGINT)
        with self._running, leash:
            self._follow(leash, verb, limit_s, take)
        code = leash.returncode
        return (-1 if code is None else code), log

    def _follow(self, leash: Leash, verb: str, limit_s: float, take: Callable[[Mapping[str, Any]], None]) -> None:
        until_s = time.monotonic() + limit_s
        events = _Events(leash.log)
        alive = True
        while alive:
            alive = leash.alive()
            for event in events.new():
                take(event)
            if self._stop.is_set():
                raise self._stopped(verb)
            if alive and time.monotonic() > until_s:
                given = f"it still ran; the end of its log:{_below(leash.tail(5))}"
                fix = f"see {leash.log}, and whether the AWS endpoint answers"
                raise TerraformTimeout(path=self._call(verb), given=given, need=f"an end within {limit_s:g} s", fix=fix)
            if alive:
                time.sleep(POLL_S)

    def _environment(self) -> dict[str, str]:
        base = self._asked_environment
        if shutil.which("terraform", path=base.get("PATH", os.defpath)) is None:
            raise MissingTool(path="terraform", need="Terraform 1.11 or newer, in PATH", fix="install it, then run ./scripts/setup")
        own = {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        version = self._provider_version()
        self._search = self._search or (find(version, base) if version else None)
        if self._search and self._search.configuration is not None:
            file = self.folder / "terraform.rc"
            file.write_text(self._search.configuration, encoding="utf-8")
            own[CONFIGURATION_VARIABLE] = str(file)
        return {**base, **own}

    def _provider_version(self) -> str | None:
        """The version of the AWS provider that the stack asks for; None where it asks for none."""
        stack = json.loads((self.folder / "cdk.tf.json").read_text(encoding="utf-8"))
        version: str | None = stack["terraform"].get("required_providers", {}).get("aws", {}).get("version")
        return version

    def _no_provider(self) -> ProviderNotFound:
        searched = self._search.searched if self._search else ()
        return ProviderNotFound(
            path=f"{PROVIDER} {self._provider_version()}",
            given="looked for in" + _below("\n".join(searched), lines=50),
            need="Terraform's registry in reach, or a folder with the provider",
            fix=f"export {VARIABLE}=DIR, where DIR is one that 'terraform providers mirror DIR' has filled on another machine",
        )

    def _failures(self, verb: str, log: Path) -> list[TerraformFailed]:
        """Terraform's own diagnostics, each an error; the end of the log where there are none."""
        diagnostics = [event["diagnostic"] for event in _Events(log).new() if event.get("type") == "diagnostic"]
        errors = [diagnostic for diagnostic in diagnostics if diagnostic.get("severity") == "error"]
        return [self._diagnosed(verb, diagnostic, log) for diagnostic in errors] or [self._failure(verb, log)]

    def _diagnosed(self, verb: str, diagnostic: Mapping[str, Any], log: Path) -> TerraformFailed:
        place = diagnostic.get("address") or self._call(verb)
        given = diagnostic["summary"] + _below(diagnostic.get("detail", ""))
        fix = f"see {log}; what was done is in the state, and the next call goes on from there"
        return TerraformFailed(path=place, given=given, need=f"nothing in the way of {verb}", fix=fix)

    def _failure(self, verb: str, log: Path) -> TerraformFailed:
        given = f"the end of its log:{_below(_text(log))}"
        return TerraformFailed(path=self._call(verb), given=given, need="an end without errors", fix=f"see {log}")

    def _stopped(self, verb: str) -> TerraformStopped:
        return TerraformStopped(path=self._call(verb), need="to run to its end", fix="run it again")

    def _call(self, verb: str) -> str:
        return f"terraform {verb} in {self.folder.name}"


class _Events:
    """The lines of Terraform's machine-readable output, as they are written."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0

    def new(self) -> Iterator[Mapping[str, Any]]:
        """The events since the last call; what is no event is left out, as is a line that is not yet whole."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            lines = file.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _below(text: str, lines: int = 15) -> str:
    """The end of a text, below the line of an error that it belongs to."""
    return "".join(f"\n       {line}" for line in text.strip().splitlines()[-lines:])
