"""Runs the tests, one pytest process a tier, or a few tiers beside each other: ``python -m penstock.scripts.dev.tiers``.

``./scripts/test`` does it after the set-up.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import NoReturn
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict

from penstock.scripts.errors import WrongOption
from penstock.sizing.errors import PenstockError

# In the order in which they run.
TIERS = {
    "fast": "neither Spark nor an emulator",
    "spark": "a Spark session on this machine",
    "executors": "two executors on Spark's standalone cluster",
    "emulated": "the emulated AWS, the Kafka broker and Terraform",
    "localstack": "LocalStack in the place of AWS",
    "kube": "a Kubernetes API server",
    "pods": "a Kubernetes cluster whose pods run",
    "chaos": "kills, and what takes long",
}
DEFAULT = ("fast", "spark", "emulated")
# Tests of the tier spark with this marker run in the tier executors too.
ON_EXECUTORS = "on_executors"
# Between the markers of tiers that run beside each other.
EITHER = " or "
# Tiers that run in several processes, at most this many: a file's tests stay together, with what they share. The tests of the tier fast are
# CPU-bound; beyond eight processes the longest file is all that is left. In the tiers spark and executors each process has a Spark session,
# a broker and an emulated S3 of its own, 3 to 6 GiB.
_MOST_PROCESSES = {"fast": 8, "spark": 2, "executors": 2}
# Tiers whose tests often wait, each for itself: Terraform's provider waits a minute for S3 to propagate the lifecycle rules of new buckets.
# Four processes keep two cores busy from the first minute to the last. One of the tier emulated has at most one local run, 3 GiB.
_WAITING_PROCESSES = {"emulated": 4}
# Tiers that run beside each other if both are asked for: each keeps one core busy, and waits for its servers for much of the time.
_TOGETHER = ("localstack", "kube")
# After so many seconds a test's process says where each of its threads stands and exits, and xdist reports the test as failed. Above the
# longest limit of a tier's tests, which pytest-timeout keeps by an exception: it can't end a test whose threads wait for each other. In the
# tiers that are not here tests may take hours.
# Source: pytest's reference, ``faulthandler_timeout`` and ``faulthandler_exit_on_timeout``.
_HANGS_S = {"fast": 660, "spark": 1_320, "executors": 1_320, "emulated": 1_320, "localstack": 3_000, "kube": 3_000}
# Source: pytest-xdist's documentation, "Running tests across multiple CPUs".
_AUTO = "PYTEST_XDIST_AUTO_NUM_WORKERS"
# Tier -> file of tests -> seconds that it took, of those that take long. They begin first: one that begins last is all that is left.
DURATIONS = Path("tests") / "durations.json"
# From how many seconds on a file is recorded.
_LONG_S = 5
# Source: pytest's reference, "Exit codes".
_NO_TESTS_COLLECTED = 5


class Outcome(BaseModel):
    """What became of one tier.

    Args:
        passed: tests that passed.
        failed: tests that failed, and errors in their set-up or in reading a file of tests.
        skipped: tests that were skipped or failed as expected.
        ended_badly: pytest itself could not do its work.
    """

    model_config = ConfigDict(frozen=True)

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    ended_badly: bool = False

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
            ended_badly=self.ended_badly or other.ended_badly,
        )

    @property
    def tests(self) -> int:
        """How many tests there were."""
        return self.passed + self.failed + self.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongOption(given=message, need="--tier, --localstack, --list, and pytest's options after --", fix="./scripts/test --help")


def _asked_tiers(asked: Sequence[str]) -> tuple[str, ...]:
    names = [name for text in asked for name in text.split(",")] or list(DEFAULT)
    unknown = [name for name in names if name not in (*TIERS, "all")]
    if unknown:
        raise WrongOption(
            path="--tier", given=", ".join(unknown), need=", ".join((*TIERS, "all")), fix="./scripts/test --list shows the tiers"
        )
    return tuple(tier for tier in TIERS if tier in names or "all" in names)


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, with the tiers to run, and what goes to pytest."""
    ours, theirs = list(argv), []
    if "--" in ours:
        at = ours.index("--")
        ours, theirs = ours[:at], ours[at + 1 :]
    parser = _Parser(
        prog="scripts/test", description="Sets up what is missing and runs the tests.", epilog="What follows -- goes to pytest."
    )
    parser.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="TIER",
        help=f"{', '.join(TIERS)} or all; several with commas or repeated ({', '.join(DEFAULT)})",
    )
    same = "the same as --tier localstack: LocalStack, without Docker"
    parser.add_argument("--localstack", action="append_const", dest="tier", const="localstack", help=same)
    parser.add_argument("--list", action="store_true", help="say what the tiers are and run nothing")
    record = f"write to {DURATIONS} how long the files of these tiers took, by which the longest begin first"
    parser.add_argument("--record-durations", action="store_true", help=record)
    options = parser.parse_args(ours)
    options.tier = _asked_tiers(options.tier)
    return options, theirs


def _read_report(report: Path) -> Outcome:
    """Counts what stands in pytest's JUnit report."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    counts = [{key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")} for suite in suites]
    failed = sum(count["failures"] + count["errors"] for count in counts)
    skipped = sum(count["skipped"] for count in counts)
    # A test that passes and whose clean-up fails stands in the report as one test with an error.
    return Outcome(passed=max(0, sum(count["tests"] for count in counts) - failed - skipped), failed=failed, skipped=skipped)


def _durations(report: Path) -> dict[str, int]:
    """File of tests -> seconds that it took by pytest's JUnit report, set-up included; of those that take long."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        file = PurePosixPath(*case.get("classname", "").split("."))
        # The class of a test follows its module.
        module = file if file.name.startswith("test_") else file.parent
        seconds[f"{module}.py"] += float(case.get("time", "0"))
    return {file: round(taken_s) for file, taken_s in sorted(seconds.items(), key=itemgetter(1), reverse=True) if taken_s >= _LONG_S}


def _record(tiers: Sequence[str], report: Path) -> None:
    known = json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}
    known[",".join(tiers)] = _durations(report)
    DURATIONS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")


class _Interrupts:
    """What a signal does here: pytest is asked once to end, cleans up after its tests, and no further tier runs."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._to_ask: subprocess.Popen[bytes] | None = None
        self._whole_group = False
        # On a terminal Ctrl-C reaches pytest without us, and a second one would cut its cleaning up short.
        self._forward = not sys.stdin.isatty()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._came)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            self._ask()

    def _ask(self) -> None:
        if not self._forward or self._to_ask is None:
            return
        if self._whole_group:
            os.killpg(self._to_ask.pid, signal.SIGINT)
        else:
            self._to_ask.send_signal(signal.SIGINT)

    def run(self, command: Sequence[str], *, environment: Mapping[str, str], whole_group: bool) -> int:
        """Runs a command to its end, in a process group of its own where a signal to the group would reach it twice.

        Args:
            command: the command.
            environment: its complete environment.
            whole_group: ask all the processes of its group to end, as a terminal does: they are pytest's own and clean up themselves.
        """
        process = subprocess.Popen(command, env=environment, process_group=0 if self._forward else None)
        self._to_ask, self._whole_group = process, whole_group
        if self.number is not None:
            self._ask()
        code = process.wait()
        self._to_ask = None
        return code


def _runs(tiers: Sequence[str]) -> list[tuple[str, ...]]:
    """The tiers of each pytest process."""
    together = tuple(tier for tier in tiers if tier in _TOGETHER)
    return [together if tier in together else (tier,) for tier in tiers if tier not in together[1:]]


def _parallel(tiers: Sequence[str]) -> tuple[str, ...]:
    """pytest-xdist's options for tiers; none where their tests run in one process."""
    one = _MOST_PROCESSES.get(tiers[0]) or _WAITING_PROCESSES.get(tiers[0])
    most = len(tiers) if len(tiers) > 1 else one
    # The conftest puts the files that take long first.
    order = ("--no-loadscope-reorder",)
    # A new process in the place of one that crashed would begin with the same test.
    crashes = ("--max-worker-restart", "0")
    return ("-p", "xdist", "-n", "auto", "--maxprocesses", str(most), "--dist", "loadfile", *order, *crashes) if most else ()


def _limit(tiers: Sequence[str]) -> tuple[str, ...]:
    """pytest's options for the end of a test that hangs; none where there is no limit."""
    if not all(tier in _HANGS_S for tier in tiers):
        return ()
    return ("-o", f"faulthandler_timeout={max(_HANGS_S[tier] for tier in tiers)}", "-o", "faulthandler_exit_on_timeout=true")


def _environment(tiers: Sequence[str]) -> Mapping[str, str]:
    """What pytest-xdist takes as ``auto``, instead of the number of cores, unless the user has said it."""
    waiting = str(len(tiers)) if len(tiers) > 1 else str(_WAITING_PROCESSES.get(tiers[0], ""))
    return {**({_AUTO: waiting} if waiting else {}), **os.environ}


def _run_tiers(tiers: Sequence[str], arguments: Sequence[str], interrupts: _Interrupts, *, record: bool) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="penstock-tests-") as folder:
        report = Path(folder) / "report.xml"
        parallel = _parallel(tiers)
        options = [*parallel, *_limit(tiers), f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", "-m", EITHER.join(tiers), *options, *arguments]
        code = interrupts.run(command, environment=_environment(tiers), whole_group=bool(parallel))
        if code == _NO_TESTS_COLLECTED:
            return Outcome()
        outcome = _read_report(report) if report.exists() else Outcome()
        if record and report.exists() and code == 0:
            _record(tiers, report)
        return outcome.model_copy(update={"ended_badly": code != 0 and outcome.failed == 0})


def _words(outcome: Outcome, arguments: Sequence[str]) -> str:
    if outcome.tests:
        return str(outcome)
    if outcome.ended_badly:
        return "pytest could not run"
    return "none of these tests" if arguments else "no tests yet"


def _run(tiers: Sequence[str], arguments: Sequence[str], *, record: bool) -> int:
    interrupts = _Interrupts()
    lines: list[str] = []
    total = Outcome()
    for beside in _runs(tiers):
        for tier in beside:
            print(f"== {tier}: {TIERS[tier]}", flush=True)
        started = time.monotonic()
        outcome = _run_tiers(beside, arguments, interrupts, record=record)
        if interrupts.number is not None:
            print("interrupted", file=sys.stderr)
            return 128 + interrupts.number
        lines.append(f"{', '.join(beside):<10} {time.monotonic() - started:7.1f} s  {_words(outcome, arguments)}")
        total += outcome
    print("\n".join(["", *lines]))
    if total.tests == 0:
        print("there was no test to run")
    print(total, flush=True)
    return 1 if total.failed or total.ended_badly or total.tests == 0 else 0


def main(argv: Sequence[str]) -> int:
    """Runs the tests of the tiers that are asked for.

    Args:
        argv: the arguments after the program's name; what follows ``--`` goes to pytest.

    Returns:
        The exit code: 0 all passed, 1 one failed or there was none, 2 a wrong option, 130 interrupted.
    """
    try:
        options, arguments = _parse(argv)
        if options.list:
            print("\n".join(f"{tier:<10} {what}{' (by default)' if tier in DEFAULT else ''}" for tier, what in TIERS.items()))
            return 0
        return _run(options.tier, arguments, record=options.record_durations)
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
