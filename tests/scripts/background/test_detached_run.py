"""Detached runs: with real processes, which say that they are ready, end, fail and are killed as a command does."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE
from penstock.jobs.driver.pod import reported_ready
from penstock.scripts.background.detached_run import READY, DetachedRun, detach, detached_runs, lines_of, show
from penstock.scripts.background.errors import DetachedAlready, DetachedRunEnded, DetachedRunStays
from penstock.scripts.background.readiness import READY_VARIABLE, ready
from penstock.scripts.background.waiter import PROCESS
from penstock.scripts.progress import Steps

# For what has no event to wait for; nothing here takes this long.
WITHIN_S = 30
SAY = f"import os, pathlib, signal, sys, time\npathlib.Path(os.environ[{READY_VARIABLE!r}]).touch()\nprint('it runs', flush=True)\n"
# Waits for a signal, and goes on.
WAIT = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n" + SAY + "signal.sigwait({signal.SIGUSR1})\n"
RUN = f"{SAY}signal.signal(signal.SIGTERM, lambda *_: (print('it has stopped', flush=True), sys.exit(0)))\nwhile True: time.sleep(1)\n"
DEAF = f"{SAY}signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)\n"
FAIL = "print('starting')\nprint('error[JOB-001]: Kafka brokers unreachable\\n  at   brokers')\nraise SystemExit(5)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for run in detached_runs("dev", folder=tmp_path):
        if run.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(run.pid, signal.SIGKILL)


def detached(folder: Path, program: str, *jobs: str) -> DetachedRun:
    return detach([sys.executable, "-I", "-S", "-c", program], "run", "dev", jobs or ("clicks",), Steps(), folder)


def go_on(run: DetachedRun) -> None:
    assert run.pid is not None
    os.kill(run.pid, signal.SIGUSR1)


def until(run: DetachedRun, *states: str) -> None:
    until_s = time.monotonic() + WITHIN_S
    while run.state not in states:
        assert time.monotonic() < until_s, run.state


def test_it_runs_on_is_found_and_stopped_in_order_with_nothing_left(folder: Path) -> None:
    run = detached(folder, RUN)
    (found,) = detached_runs("dev", "clicks", folder)
    assert (found, found.state, detached_runs("dev", "orders", folder)) == (run, "running", [])
    assert list(lines_of(found, follow=False)) == ["it runs\n"]
    pid = found.pid
    assert pid is not None
    # Neither of this process's session nor its child: what ends the terminal does not reach it.
    assert os.getsid(pid) != os.getsid(0)
    log = found.log.open(encoding="utf-8")
    found.stop()
    assert log.read().endswith("it has stopped\n")
    log.close()
    assert (detached_runs("dev", folder=folder), Path(f"/proc/{pid}").exists(), list((folder / "dev").iterdir())) == ([], False, [])


def test_an_environment_of_a_file_is_named_by_it_where_its_name_would_not_find_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, file = [sys.executable, "-I", "-S", "-c", RUN], "envs/dev.yaml"
    run = detach(command, "run", "dev", ("clicks",), Steps(), folder, argument=file)
    show(run, Steps())
    said = capsys.readouterr().err
    for line in (f"penstock logs {file} --job clicks --follow", f"penstock status {file}\n", f"penstock stop {file} --job clicks"):
        assert line in said
    with pytest.raises(DetachedAlready) as raised:
        detached(folder, RUN)
    assert raised.value.fix == f"penstock stop {file} --job clicks"
    run.stop()


def test_a_driver_that_reports_its_pod_as_ready_does_not_report_the_run(folder: Path) -> None:
    assert READY_VARIABLE != READY_FILE_VARIABLE
    file = folder / "ready"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(READY_VARIABLE, str(file))
        with reported_ready():
            assert not file.exists()
        ready()
        assert file.exists()
        with reported_ready():
            pass
    # A driver takes its own away when it ends.
    assert file.exists()


def test_one_that_dies_later_says_why(folder: Path) -> None:
    run = detached(folder, WAIT + FAIL)
    go_on(run)
    until(run, "failed")
    assert run.why() == "ended with exit code 5\nerror[JOB-001]: Kafka brokers unreachable\n  at   brokers"
    run.stop()
    assert not run.folder.exists()


def test_one_that_is_killed_says_so_with_the_end_of_its_log(folder: Path) -> None:
    run = detached(folder, RUN)
    assert run.pid is not None
    os.kill(run.pid, signal.SIGKILL)
    until(run, "failed")
    assert run.why() == "was killed by SIGKILL\nit runs"


def test_one_whose_end_nobody_has_seen_is_lost(folder: Path) -> None:
    run = detached(folder, RUN)
    until(run, "running")
    pid = run.pid
    # As after a reboot: the number belongs to another process.
    process = run.folder / PROCESS
    written = process.read_text(encoding="utf-8")
    process.write_text(written.replace('"ticks": ', '"ticks": 1'), encoding="utf-8")
    assert (run.state, run.pid, "nobody has seen it end" in run.why()) == ("lost", None, True)
    process.write_text(written, encoding="utf-8")
    assert run.pid == pid


def test_one_that_fails_before_it_is_ready_is_an_error_whose_log_is_kept(folder: Path) -> None:
    with pytest.raises(DetachedRunEnded) as raised:
        detached(folder, FAIL)
    assert "ended with exit code 5\nerror[JOB-001]" in raised.value.given
    kept = folder / "dev" / "clicks.log"
    assert str(kept) in raised.value.fix
    assert kept.read_text(encoding="utf-8").startswith("starting\n")
    assert detached_runs("dev", folder=folder) == []


def test_one_that_ends_well_has_ended(folder: Path) -> None:
    run = detached(folder, "print('all is read')")
    assert (run.state, run.why(), run.alive) == ("ended", "ended with exit code 0", False)


def test_a_job_runs_detached_once(folder: Path) -> None:
    run = detached(folder, RUN, "clicks", "orders")
    with pytest.raises(DetachedAlready, match="RUN-060") as raised:
        detached(folder, RUN, "orders")
    assert str(run.pid) in raised.value.given
    assert raised.value.fix == "penstock stop dev --job clicks"
    run.stop()
    detached(folder, "", "orders")
    # One that has ended is in nobody's way.
    detached(folder, RUN, "orders").stop()


def test_one_that_does_not_end_stays_and_is_named(folder: Path) -> None:
    run = detached(folder, DEAF)
    with pytest.raises(DetachedRunStays, match="RUN-062") as raised:
        run.stop(limit_s=0)
    assert f"kill -9 {run.pid}" in raised.value.fix
    assert run.state == "running"


def test_an_interrupt_until_it_is_ready_ends_it(folder: Path) -> None:
    waiting = RUN.replace("pathlib.Path", "# pathlib.Path")
    failures: list[BaseException] = []

    def interrupted() -> None:
        until_s = time.monotonic() + WITHIN_S
        while not any("it runs" in run.log.read_text(encoding="utf-8") for run in detached_runs("dev", folder=folder)):
            if time.monotonic() > until_s:
                failures.append(AssertionError("it did not start"))
                break
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupted)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        detached(folder, waiting)
    thread.join()
    assert (failures, detached_runs("dev", folder=folder)) == ([], [])


def test_followed_lines_end_with_the_run(folder: Path) -> None:
    run = detached(folder, f"{WAIT}print('and ends')\n")
    lines = lines_of(run, follow=True)
    assert next(lines) == "it runs\n"
    go_on(run)
    assert list(lines) == ["and ends\n"]
    assert (run.folder / READY).exists()
