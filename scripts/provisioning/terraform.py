"""Terraform on a synthesized stack: each call has a timeout, reports progress, and fails with Terraform's own diagnostics."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.infra.provider_lock import FILE
from penstock.scripts.errors import MissingTool, ProviderNotFound, TerraformFailed, TerraformStopped, TerraformTimeout
from penstock.scripts.process.supervised import SupervisedProcess
from penstock.scripts.provisioning.errors import ProviderNotLocked, StateMoved, StateNotWritten
from penstock.scripts.provisioning.provider_mirror import CONFIGURATION_VARIABLE, VARIABLE, Search, address, find, system
from penstock.scripts.provisioning.state_lock import LOCKED, locked
from penstock.scripts.provisioning.state_resource import StateResource, state_resources
from penstock.sizing.errors import RunFailed, raise_all

# The provider's archive in the registry has 150 MB.
INIT_LIMIT_S = 900
# The provider polls an unresponsive endpoint for many minutes, one resource at a time.
APPLY_LIMIT_S = 900
PLAN_LIMIT_S = 300
# It starts the provider to read a plan, which keeps a core busy for seconds, and on a busy machine for a minute.
SHOW_LIMIT_S = 300
OUTPUT_LIMIT_S = 60
UNLOCK_LIMIT_S = 120
# When asked to stop, Terraform waits for running operations of the provider and writes its state.
STOP_GRACE_S = 30
POLL_S = 0.05

# Terraform's documentation, "Provider Plugin Cache": not safe for several calls of init at the same time.
_INSTALLING = threading.Lock()
# Source: Terraform's documentation, "plan -detailed-exitcode".
_PLAN_HAS_CHANGES = 2
# Calls that would prompt.
_ASKING = ("init", "plan", "apply", "destroy")
# The call that prints a plan, which may be large, and uses no endpoint.
_SHOW = "show"
# Said of a package in a mirror, in a registry and of one that was installed before.
_NOT_LOCKED = ("of the checksums previously recorded in the dependency lock file", "of the checksums recorded in the dependency lock file")
_NO_PROVIDER = ("Failed to query available provider packages", "Failed to install provider", "Inconsistent dependency lock file")
# Where Terraform leaves a state that it could not write to its backend, for example after credentials expired.
_UNWRITTEN = "errored.tfstate"
_STATE_MOVED = "Backend configuration changed"

Progress = Callable[[str], None]
# An event of Terraform's machine-readable output.
Watch = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Change:
    """An applied change of one resource.

    Args:
        address: the resource's address, such as ``aws_s3_bucket.output``.
        action: create, update or delete.
        duration_s: duration in whole seconds.
    """

    address: str
    action: str
    duration_s: int


@dataclass(frozen=True)
class Applied:
    """Result of an apply or a destroy.

    Args:
        changes: changed resources, in order of completion.
        outputs: the stack's outputs by name; empty after a destroy.
        duration_s: duration in seconds of the whole call, including a first init.
    """

    changes: tuple[Change, ...]
    outputs: Mapping[str, Any]
    duration_s: float

    def count(self, action: str) -> int:
        """Count the resources with an action."""
        return sum(change.action == action for change in self.changes)

    def __str__(self) -> str:
        words = (("create", "created"), ("update", "changed"), ("delete", "destroyed"))
        done = ", ".join(f"{self.count(action)} {word}" for action, word in words if self.count(action))
        return f"{done or 'nothing to do'} in {self.duration_s:.0f} s"


class Terraform:
    """Terraform on one stack.

    When a call is interrupted by its timeout, by `stop` or by the end of this process, Terraform is asked to stop and writes its state.
    The complete output is in ``terraform-<call>.log`` in the stack's folder.

    Args:
        folder: the stack's folder, with its cdk.tf.json.
        environment: environment variables of Terraform and the provider, including credentials.
        limit_s: timeout in seconds of any call; by default each call has its own.
        apply_limit_s: timeout of an apply or a destroy without `limit_s`.
    """

    def __init__(
        self, folder: Path, *, environment: Mapping[str, str], limit_s: float | None = None, apply_limit_s: float = APPLY_LIMIT_S
    ) -> None:
        self.folder = folder.absolute()
        self._asked_environment = dict(environment)
        self._limit_s = limit_s
        self._apply_limit_s = apply_limit_s
        self._search: Search | None = None
        self._stop = threading.Event()
        self._running = threading.Lock()

    def init(self) -> None:
        """Install the provider; the other calls do so on their own if necessary.

        Raises:
            ProviderNotFound: RUN-005, with the searched locations.
            ProviderNotLocked: DEP-056, it is not the package that the stack's lock file has.
            PenstockError: TOOL-001, RUN-007 to RUN-009.
        """
        with _INSTALLING:
            code, log = self._run("init", ["-no-color"], INIT_LIMIT_S)
        if code == 0:
            return
        said = " ".join(_text(log).split())
        if any(words in said for words in _NOT_LOCKED):
            raise self._not_locked()
        if any(words in said for words in _NO_PROVIDER):
            raise self._no_provider()
        if _STATE_MOVED in said:
            raise self._state_moved()
        raise self._failure("init", log)

    def plan(self) -> bool:
        """Whether a plan of the stack has changes.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        self._ensure_init()
        code, log = self._run("plan", ["-json", "-detailed-exitcode"], PLAN_LIMIT_S)
        if code not in (0, _PLAN_HAS_CHANGES):
            raise_all(self._failures("plan", log))
        return code == _PLAN_HAS_CHANGES

    def apply(self, progress: Progress = lambda address: None) -> Applied:
        """Apply the stack.

        Args:
            progress: called with the address of each finished resource, in the thread of this call.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        return self._change("apply", progress)

    def destroy(self, progress: Progress = lambda address: None) -> Applied:
        """Destroy all resources in the stack's state.

        Args:
            progress: see `apply`.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        return self._change("destroy", progress)

    def plan_to(self, file: Path, *, destroy: bool = False, targets: Sequence[str] = ()) -> Mapping[str, Any]:
        """Create a plan for `apply_plan`.

        Args:
            file: file of the plan.
            destroy: whether it is a destroy plan.
            targets: addresses of targeted resources, planned with their dependents; empty: all.

        Returns:
            The plan in the format of ``terraform show -json``.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009, DEP-006.
        """
        self._ensure_init()
        options = ["-json", f"-out={file.absolute()}", *(["-destroy"] if destroy else []), *(f"-target={target}" for target in targets)]
        code, log = self._run("plan", options, PLAN_LIMIT_S)
        if code != 0:
            raise_all(self._failures("plan", log))
        return self._show([str(file.absolute())])

    def apply_plan(self, file: Path, watch: Watch = lambda event: None) -> Applied:
        """Apply exactly a plan of `plan_to`.

        Args:
            file: file of the plan.
            watch: called with each event, in the thread of this call.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009, DEP-006.
        """
        return self._change("apply", lambda address: None, ["-json", str(file.absolute())], watch)

    def resources(self) -> list[StateResource]:
        """Return the resources in the state, without data sources. The raw state is read, which does not start the provider and so saves
        seconds.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        self._ensure_init()
        code, log = self._run("state", ["pull"], OUTPUT_LIMIT_S)
        if code != 0:
            raise self._failure("state", log)
        return state_resources(_document(log))

    def untaint(self, address: str) -> None:
        """Untaint a resource whose creation was interrupted: the next plan completes it instead of replacing it.

        Args:
            address: address of the resource.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        code, log = self._run("untaint", ["-no-color", address], OUTPUT_LIMIT_S)
        if code != 0:
            raise self._failure("untaint", log)

    def unlock(self, lock_id: str) -> None:
        """Force-unlock a stale state lock.

        Args:
            lock_id: the id from DEP-006; Terraform refuses any other.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        self._ensure_init()
        code, log = self._run("force-unlock", ["-force", lock_id], UNLOCK_LIMIT_S)
        if code != 0:
            raise self._failure("force-unlock", log)

    def _show(self, options: list[str]) -> Mapping[str, Any]:
        code, log = self._run(_SHOW, ["-json", "-no-color", *options], SHOW_LIMIT_S)
        if code != 0:
            raise self._failure("show", log)
        return _document(log)

    def output(self) -> dict[str, Any]:
        """Return the outputs of the applied stack, by name.

        Raises:
            PenstockError: TOOL-001, RUN-005, RUN-007 to RUN-009.
        """
        self._ensure_init()
        code, log = self._run("output", ["-json", "-no-color"], OUTPUT_LIMIT_S)
        if code != 0:
            raise self._failure("output", log)
        said = _text(log)
        # Warnings precede it.
        outputs, _ = json.JSONDecoder().raw_decode(said, said.index("{"))
        return {name: output["value"] for name, output in outputs.items()}

    def stop(self) -> None:
        """Stop the call that runs in another thread, which then raises RUN-009, and wait for its end. No further calls are accepted."""
        self.ask_to_stop()
        with self._running:
            pass

    def ask_to_stop(self) -> None:
        """The same without waiting."""
        self._stop.set()

    def _change(
        self, verb: str, progress: Progress, options: Sequence[str] = ("-json", "-auto-approve"), watch: Watch | None = None
    ) -> Applied:
        started_s = time.monotonic()
        self._ensure_init()
        changes: list[Change] = []
        outputs: dict[str, Any] = {}

        def take(event: Mapping[str, Any]) -> None:
            if watch is not None:
                watch(event)
            if event.get("type") == "apply_complete" and event["hook"]["action"] != "read":
                hook = event["hook"]
                changes.append(Change(hook["resource"]["addr"], hook["action"], int(hook.get("elapsed_seconds", 0))))
                progress(changes[-1].address)
            elif event.get("type") == "outputs":
                outputs.update({name: output["value"] for name, output in event["outputs"].items() if "value" in output})

        code, log = self._run(verb, list(options), self._apply_limit_s, take)
        if code != 0:
            raise_all(self._failures(verb, log))
        return Applied(tuple(changes), outputs if verb == "apply" else {}, time.monotonic() - started_s)

    def _ensure_init(self) -> None:
        if (self.folder / _UNWRITTEN).exists():
            raise self._unwritten()
        ready = self.folder / ".terraform" / "penstock.json"
        if not (ready.exists() and ready.read_text(encoding="utf-8") == self._initialized()):
            self.init()
            ready.parent.mkdir(exist_ok=True)
            ready.write_text(self._initialized(), encoding="utf-8")

    def _initialized(self) -> str:
        """What an init depends on: Terraform adds to the lock file what it has verified."""
        lock = self.folder / FILE
        locked = lock.read_text(encoding="utf-8") if lock.exists() else None
        return json.dumps({"settings": self._settings(), "lock": locked}, sort_keys=True)

    def _run(
        self, verb: str, options: list[str], limit_s: float, take: Callable[[Mapping[str, Any]], None] = lambda event: None
    ) -> tuple[int, Path]:
        """Run Terraform to its end and return its exit code and log."""
        if self._stop.is_set():
            raise self._stopped(verb)
        environment = self._environment()
        log = self.folder / f"terraform-{verb}.log"
        log.unlink(missing_ok=True)
        limit_s = self._limit_s or limit_s
        options = ["-input=false", *options] if verb in _ASKING else options
        # Terraform's provider plugins ignore SIGINT and leave it to Terraform to stop them in order; SIGTERM would stop them at once.
        command = ["terraform", verb, *options]
        supervised = SupervisedProcess(command, env=environment, log=log, cwd=self.folder, grace_s=STOP_GRACE_S, ask=signal.SIGINT)
        with self._running, supervised:
            self._follow(supervised, verb, limit_s, take)
        code = supervised.returncode
        return (-1 if code is None else code), log

    def _follow(self, supervised: SupervisedProcess, verb: str, limit_s: float, take: Callable[[Mapping[str, Any]], None]) -> None:
        until_s = time.monotonic() + limit_s
        events = _Events(supervised.log)
        alive = True
        while alive:
            alive = supervised.alive()
            for event in events.new():
                take(event)
            if self._stop.is_set():
                raise self._stopped(verb)
            if alive and time.monotonic() > until_s:
                raise self._timed_out(supervised, verb, limit_s)
            if alive:
                time.sleep(POLL_S)

    def _timed_out(self, supervised: SupervisedProcess, verb: str, limit_s: float) -> TerraformTimeout:
        if verb == _SHOW:
            given, fix = "it was still reading the plan", "run again on a less busy machine, or with a longer limit: --limit-s"
        else:
            given = f"it was still running; the end of its log:{_below(supervised.tail(5))}"
            fix = f"check {supervised.log}, and that the AWS endpoint responds"
        return TerraformTimeout(path=self._call(verb), given=given, need=f"completion within {limit_s:g} s", fix=fix)

    def _environment(self) -> dict[str, str]:
        base = self._asked_environment
        if shutil.which("terraform", path=base.get("PATH", os.defpath)) is None:
            raise MissingTool(path="terraform", need="Terraform 1.11 or later in PATH", fix="install it, then run ./scripts/setup")
        own = {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        provider = self._provider()
        self._search = self._search or (find(provider[1], base, provider=provider[0]) if provider else None)
        if self._search and self._search.configuration is not None:
            file = self.folder / "terraform.rc"
            file.write_text(self._search.configuration, encoding="utf-8")
            own[CONFIGURATION_VARIABLE] = str(file)
        return {**base, **own}

    def _provider(self) -> tuple[str, str] | None:
        """Address and version of the stack's provider; None if it has none. A stack is for AWS or for Kubernetes, so it has at most one."""
        for required in self._settings().get("required_providers", {}).values():
            return address(required["source"]), required["version"]
        return None

    def _settings(self) -> Mapping[str, Any]:
        """The stack's ``terraform`` block: required providers and backend."""
        stack = json.loads((self.folder / "cdk.tf.json").read_text(encoding="utf-8"))
        settings: Mapping[str, Any] = stack["terraform"]
        return settings

    def _no_provider(self) -> ProviderNotFound:
        searched = self._search.searched if self._search else ()
        return ProviderNotFound(
            path=" ".join(self._provider() or ()),
            given="searched in" + _below("\n".join(searched), lines=50),
            need="access to the Terraform Registry, or a directory with the provider",
            fix=f"set {VARIABLE}=DIR, where DIR was filled by 'terraform providers mirror DIR' on another machine",
        )

    def _not_locked(self) -> ProviderNotLocked:
        provider, version = self._provider() or ("", "")
        folder = self._search.folder if self._search else None
        source = f"the package in {folder}" if folder else "the package of Terraform's registry, or of the mirror in its CLI configuration"
        mirror = f"-fs-mirror={folder} " if folder else ""
        fix = (
            f"use the release of the provider; if the package is yours, or unpacked for a platform without a known hash, run"
            f" 'terraform -chdir={self.folder} providers lock {mirror}-platform={system()}' and copy {FILE} from there"
            " to the repository's root"
        )
        need = f"one of the packages of {self.folder / FILE}"
        return ProviderNotLocked(path=f"{provider} {version}", given=source, need=need, fix=fix)

    def _state_moved(self) -> StateMoved:
        init = f"terraform -chdir={self.folder} init"
        fix = f"'{init} -migrate-state' moves the state; '{init} -reconfigure' does not, for a state that was already moved"
        given = "another backend than in the last run"
        return StateMoved(path=f"stack {self.folder.name}", given=given, need="an unchanged backend", fix=fix)

    def _unwritten(self) -> StateNotWritten:
        file = self.folder / _UNWRITTEN
        fix = f"'terraform -chdir={self.folder} state push {_UNWRITTEN}' with valid credentials, then delete the file"
        need = "the state saved to its backend: until then Terraform does not know what the last apply created"
        return StateNotWritten(path=f"stack {self.folder.name}", given=str(file), need=need, fix=fix)

    def _failures(self, verb: str, log: Path) -> list[RunFailed]:
        """Terraform's diagnostics, one error each; the end of the log if there are none."""
        diagnostics = [event["diagnostic"] for event in _Events(log).new() if event.get("type") == "diagnostic"]
        errors = [diagnostic for diagnostic in diagnostics if diagnostic.get("severity") == "error"]
        return [self._diagnosed(verb, diagnostic, log) for diagnostic in errors] or [self._failure(verb, log)]

    def _diagnosed(self, verb: str, diagnostic: Mapping[str, Any], log: Path) -> RunFailed:
        if diagnostic["summary"] == LOCKED:
            return locked(self.folder.name, diagnostic.get("detail", ""))
        place = diagnostic.get("address") or self._call(verb)
        given = diagnostic["summary"] + _below(diagnostic.get("detail", ""))
        fix = f"check {log}; completed changes are in the state, and the next run continues from there"
        return TerraformFailed(path=place, given=given, need=f"a successful {verb}", fix=fix)

    def _failure(self, verb: str, log: Path) -> TerraformFailed:
        given = f"the end of its log:{_below(_text(log))}"
        return TerraformFailed(path=self._call(verb), given=given, need="completion without errors", fix=f"check {log}")

    def _stopped(self, verb: str) -> TerraformStopped:
        return TerraformStopped(path=self._call(verb), need="an uninterrupted run", fix="retry")

    def _call(self, verb: str) -> str:
        return f"terraform {verb} in {self.folder.name}"


class _Events:
    """Read the lines of Terraform's machine-readable output while they are written."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0

    def new(self) -> Iterator[Mapping[str, Any]]:
        """Return the events since the last call; other lines and an incomplete last line are skipped."""
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


def _document(log: Path) -> Mapping[str, Any]:
    """Parse the JSON in a log, after any warnings of Terraform; empty if there is none. The log may contain secrets and is deleted."""
    said = _text(log)
    log.unlink()
    start = said.find("{")
    document: Mapping[str, Any] = json.JSONDecoder().raw_decode(said, start)[0] if start >= 0 else {}
    return document


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _below(text: str, lines: int = 15) -> str:
    """The end of a text, indented below the error that it belongs to."""
    return "".join(f"\n       {line}" for line in text.strip().splitlines()[-lines:])


def stop_all(running: Collection[Terraform]) -> None:
    """Stop the calls that run, all at the same time, and wait for their end."""
    for terraform in running:
        terraform.ask_to_stop()
    for terraform in running:
        terraform.stop()
