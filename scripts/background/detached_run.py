"""A command that runs in the background of this machine: its log, whether it runs, and why it does not.

Its folder, ``.penstock/detached/ENV/JOB``, has the log, what was started, the process, and how it ended. It goes when the run is stopped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from penstock.scripts.background.errors import DetachedAlready, DetachedRunEnded, DetachedRunStays
from penstock.scripts.background.readiness import READY_VARIABLE
from penstock.scripts.background.waiter import END, PROCESS, started_ticks
from penstock.scripts.progress import Steps

DEFAULT_FOLDER = Path(".penstock/detached")
LOG, STARTED, READY = "log", "started.json", "ready"
# How soon something new is noticed, in seconds.
LOOK_S = 0.2
# The longest that a job takes to end: penstock run gives a driver two minutes and two triggers, ten minutes with availableNow.
STOP_LIMIT_S = 900.0
# A Python takes some 30 ms to start; a minute allows for a machine that swaps.
_START_LIMIT_S = 60.0
_RECORD_LIMIT_S = 10.0
_WAITER = Path(__file__).with_name("waiter.py")
_ERROR = re.compile(r"^error\[[A-Z]+-\d+\]", re.MULTILINE)
_TAIL_LINES = 10

State = Literal["starting", "running", "ended", "failed", "lost"]


@dataclass(frozen=True)
class DetachedRun:
    """A detached run.

    Args:
        folder: of the run.
        verb: of its command.
        environment: its name.
        argument: what a command line takes for the environment: its name, or its file.
        jobs: names of its jobs.
        since: when it was started.
    """

    folder: Path
    verb: str
    environment: str
    argument: str
    jobs: tuple[str, ...]
    since: datetime

    @property
    def log(self) -> Path:
        """What the command would write to a terminal."""
        return self.folder / LOG

    @property
    def pid(self) -> int | None:
        """Its process; None if there is none any more, or not yet."""
        process = _read(self.folder / PROCESS)
        if process is None or started_ticks(process["pid"]) != process["ticks"]:
            return None
        return int(process["pid"])

    @property
    def end(self) -> Mapping[str, Any] | None:
        """``code`` and ``at`` of its end; None if it runs, or if its end was not observed."""
        return _read(self.folder / END)

    @property
    def state(self) -> State:
        """``lost``: it runs no more, and nobody has seen it end, such as after a reboot."""
        end = self.end
        if end is not None:
            return "failed" if end["code"] else "ended"
        if self.pid is None:
            # The end is recorded right after the process is gone.
            end = self.end
            waits = _read(self.folder / PROCESS) is None and _is_new(self.folder)
            return "starting" if waits else "lost" if end is None else "failed" if end["code"] else "ended"
        return "running" if (self.folder / READY).exists() else "starting"

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.state in ("starting", "running")

    def why(self) -> str:
        """How it ended, with its error: the last one in its log, or the log's last lines."""
        end = self.end
        how = (
            "its process is gone, and nobody has seen it end: the machine has restarted, or it was killed"
            if end is None
            else _how(end["code"])
        )
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        errors = [match.start() for match in _ERROR.finditer(text)]
        said = text[errors[0] :].rstrip() if errors else "\n".join(text.rstrip().splitlines()[-_TAIL_LINES:])
        return f"{how}\n{said}" if said and (end is None or end["code"]) else how

    def stop(self, limit_s: float = STOP_LIMIT_S) -> None:
        """Ends it in order, as Ctrl-C does, and removes its folder; of one that has ended, only the latter.

        Raises:
            DetachedRunStays: RUN-062.
        """
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            until_s = time.monotonic() + limit_s
            while self.pid is not None:
                if time.monotonic() > until_s:
                    fix = f"see {self.log}; kill -9 {pid} ends it at once"
                    raise DetachedRunStays(path=f"process {pid}", need=f"an end within {limit_s:g} s", fix=fix)
                time.sleep(LOOK_S)
            # Its end is recorded right after.
            until_s = time.monotonic() + _RECORD_LIMIT_S
            while self.end is None and time.monotonic() < until_s:
                time.sleep(LOOK_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def detached_runs(environment: str, job: str | None = None, folder: Path = DEFAULT_FOLDER) -> list[DetachedRun]:
    """The detached runs of an environment, also those that have ended and were not stopped.

    Args:
        environment: its name.
        job: a job that they run; None: any.
        folder: of all detached runs, below the current one.
    """
    found = [_run(file.parent) for file in sorted((folder / environment).glob(f"*/{STARTED}"))]
    return [run for run in found if run is not None and (job is None or job in run.jobs)]


def detach(
    command: Sequence[str | Path],
    verb: str,
    environment: str,
    jobs: Sequence[str],
    steps: Steps,
    folder: Path = DEFAULT_FOLDER,
    *,
    argument: str | None = None,
) -> DetachedRun:
    """Starts a command in the background, and waits until it is ready. Ctrl-C until then ends it.

    Args:
        command: with its arguments; it calls `penstock.scripts.background.readiness.ready`.
        verb: its verb.
        environment: name of its environment.
        jobs: names of its jobs.
        steps: shows what it does.
        folder: of all detached runs.
        argument: what a command line takes for the environment; None: its name.

    Returns:
        The run, which may have ended well.

    Raises:
        DetachedAlready: RUN-060.
        DetachedRunEnded: RUN-061.
    """
    run = _begun(folder / environment / "+".join(jobs), verb, environment, jobs, argument or environment)
    variables = {**os.environ, READY_VARIABLE: str((run.folder / READY).absolute()), "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, _WAITER, run.folder.absolute(), *command]
    try:
        with run.log.open("ab") as log:
            # In a session of its own: what ends the terminal does not end it.
            subprocess.run(words, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, check=True)
        with steps.at("detach", f"waiting until {', '.join(jobs)} is ready; log {run.log}") as step:
            while run.state == "starting":
                time.sleep(LOOK_S)
            step.said = f"{', '.join(jobs)}: {run.state}"
    except KeyboardInterrupt:
        with steps.at("stop", "ending it again"):
            _recorded(run)
            run.stop()
        raise
    if run.state in ("failed", "lost"):
        why = run.why()
        shutil.move(run.log, kept := run.folder.with_name(f"{run.folder.name}.log"))
        shutil.rmtree(run.folder, ignore_errors=True)
        raise DetachedRunEnded(path=", ".join(jobs), given=why, need="a run that gets ready", fix=f"correct what its log says: {kept}")
    return run


def _recorded(run: DetachedRun) -> None:
    """Waits until the process of a run that has just begun is known: it may run already."""
    until_s = time.monotonic() + _RECORD_LIMIT_S
    while run.pid is None and run.end is None and time.monotonic() < until_s:
        time.sleep(LOOK_S)


def show(run: DetachedRun, steps: Steps) -> None:
    """Prints how a run is looked at and stopped."""
    steps.line("log", f"penstock logs {run.argument} --job {run.jobs[0]} --follow")
    steps.line("status", f"penstock status {run.argument}")
    steps.line("stop", f"penstock stop {run.argument} --job {run.jobs[0]}")


def lines_of(run: DetachedRun, *, follow: bool) -> Iterator[str]:
    """The lines of a run's log; while it runs, also those that come.

    Args:
        run: the run.
        follow: whether to wait for more.
    """
    with run.log.open(encoding="utf-8", errors="replace") as file:
        while True:
            # Asked first: what it writes until its end is read, too.
            goes_on = follow and run.alive
            yield from file
            if not goes_on:
                return
            time.sleep(LOOK_S)


def _begun(folder: Path, verb: str, environment: str, jobs: Sequence[str], argument: str) -> DetachedRun:
    """The folder of a new run; that of an ended one with the same jobs is replaced."""
    for run in detached_runs(environment, folder=folder.parent.parent):
        if set(run.jobs) & set(jobs):
            if run.alive:
                fix = f"penstock stop {run.argument} --job {run.jobs[0]}"
                given = f"penstock {run.verb}, process {run.pid}, since {run.since:%Y-%m-%d %H:%M:%S} UTC"
                raise DetachedAlready(path=", ".join(run.jobs), given=given, need="one detached run of a job", fix=fix)
            shutil.rmtree(run.folder, ignore_errors=True)
    folder.mkdir(parents=True)
    since = datetime.now(UTC)
    document = {"verb": verb, "environment": environment, "argument": argument, "jobs": list(jobs), "since": since.isoformat()}
    (folder / STARTED).write_text(json.dumps(document), encoding="utf-8")
    return DetachedRun(folder, verb, environment, argument, tuple(jobs), since)


def _run(folder: Path) -> DetachedRun | None:
    started = _read(folder / STARTED)
    if started is None:
        return None
    named, since = started["environment"], datetime.fromisoformat(started["since"])
    # A run that an earlier release has started has no argument.
    return DetachedRun(folder, started["verb"], named, started.get("argument", named), tuple(started["jobs"]), since)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document


def _is_new(folder: Path) -> bool:
    """Whether a run was started within the time that a process takes to start."""
    try:
        return time.time() - (folder / STARTED).stat().st_mtime < _START_LIMIT_S
    except OSError:
        return False


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"
