"""``./scripts/chaos``: injects faults into the real parts, and shows for each what was lost, what was doubled and how long it took.

A fault is one or several tests of this repository. Each fault is a run of pytest of its own, so that one that fails or is interrupted
leaves the others alone; what a test has counted is in the properties of its report.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict

from penstock.scripts.errors import WrongOption
from penstock.scripts.render.screen import Screen, screen_of
from penstock.scripts.render.table import Cell, Column, Row, Styled, table
from penstock.sizing.errors import PenstockError

_KILLS, _EXECUTORS, _DRIVERS = "tests/chaos/test_kills.py", "tests/chaos/test_executor_kills.py", "tests/chaos/test_two_drivers.py"
_OUTAGES, _SPARK = "tests/chaos/test_outages.py", "tests/jobs/spark"
_INTERRUPTED = 130


class Fault(BaseModel):
    """A fault.

    Args:
        title: what happens.
        tests: what injects it and compares the rows, or tries that it is refused.
    """

    model_config = ConfigDict(frozen=True)

    title: str
    tests: tuple[str, ...]


def _fault(title: str, *tests: str) -> Fault:
    return Fault(title=title, tests=tests)


# By name, in the order in which they run: what is known to be bad comes first, so that a harness that sees nothing is found at once.
FAULTS = {
    "bad-sinks": _fault(
        "sinks that are known to be bad, which must be caught",
        f"{_KILLS}::test_sinks_that_are_known_to_be_bad_are_caught",
        f"{_EXECUTORS}::test_a_sink_that_is_known_to_be_bad_is_caught",
        f"{_DRIVERS}::test_a_sink_that_is_known_to_be_bad_is_caught",
    ),
    "driver-points": _fault(
        "driver killed at each fixed point",
        f"{_KILLS}::test_a_driver_killed_at_every_point_loses_nothing_and_doubles_nothing_in_any_sink",
    ),
    "driver-random": _fault(
        "driver killed at random",
        f"{_KILLS}::test_a_driver_killed_at_random_loses_nothing_and_doubles_nothing",
        f"{_KILLS}::test_a_join_killed_three_times_anywhere_makes_each_pair_once",
    ),
    "executor-points": _fault(
        "executor or Python worker killed at each fixed point, or frozen",
        f"{_EXECUTORS}::test_an_executor_killed_at_every_point_loses_nothing_and_doubles_nothing_in_any_sink",
        f"{_EXECUTORS}::test_an_executor_killed_while_it_commits_the_state_of_any_block_changes_no_result",
        f"{_EXECUTORS}::test_an_executor_that_was_frozen_until_its_tasks_ran_elsewhere_writes_nothing_that_counts",
        f"{_EXECUTORS}::test_two_attempts_of_a_task_at_the_same_time_write_it_once",
    ),
    "executor-random": _fault(
        "executors killed at random", f"{_EXECUTORS}::test_executors_killed_at_random_lose_nothing_and_double_nothing"
    ),
    "nodes": _fault(
        "several executors at once, nodes with their disks, a spot notice",
        f"{_EXECUTORS}::test_several_executors_at_once_and_nodes_with_their_disks",
        f"{_EXECUTORS}::test_a_node_lost_after_its_notice",
    ),
    "broker-restart": _fault(
        "broker killed, and stopped, and started again",
        f"{_OUTAGES}::test_a_broker_that_is_killed_and_one_that_is_stopped_are_started_again",
    ),
    "broker-away": _fault("broker away for two minutes", f"{_OUTAGES}::test_a_broker_that_does_not_answer_for_two_minutes"),
    "partitions": _fault(
        "partitions added while the job runs",
        f"{_SPARK}/test_restarts.py::test_partitions_added_while_the_job_runs_are_read_and_hold_the_watermark",
    ),
    "s3-errors": _fault(
        "S3 answers 503 to 20 % and 500 to 5 % of all requests", f"{_OUTAGES}::test_an_s3_that_refuses_a_quarter_of_all_requests"
    ),
    "s3-hangs": _fault(
        "writes to S3 that hang and arrive late", f"{_OUTAGES}::test_writes_that_hang_and_reach_s3_once_they_were_written_again"
    ),
    "aged-out": _fault("records deleted before they are read", f"{_SPARK}/test_records_gone.py"),
    "damaged-checkpoint": _fault(
        "checkpoint truncated, holed or gone",
        f"{_SPARK}/test_restarts.py::test_a_damaged_checkpoint_is_reported_with_its_damage",
        f"{_SPARK}/test_restarts.py::test_a_committed_micro_batch_without_its_record_is_a_damaged_checkpoint",
        f"{_SPARK}/test_generations.py::test_a_checkpoint_that_was_deleted_is_said_before_spark_starts_anew",
    ),
    "two-drivers": _fault(
        "two drivers on one checkpoint",
        f"{_DRIVERS}::test_a_driver_frozen_beyond_its_lease_at_every_point_harms_nothing_when_it_is_woken_and_stops_with_a_code",
        f"{_DRIVERS}::test_a_join_whose_driver_is_frozen_makes_each_pair_once",
        f"{_DRIVERS}::test_of_two_live_drivers_none_loses_or_doubles_anything",
    ),
    "late-rows": _fault(
        "late rows", f"{_SPARK}/test_time.py::test_a_row_is_late_beyond_the_allowed_lateness_and_wherever_the_state_is_cleared"
    ),
    "idle-inputs": _fault(
        "an idle partition, an idle input of a join",
        f"{_SPARK}/test_time.py::test_a_partition_that_lags_in_a_catch_up_is_not_idle_and_loses_no_row",
        f"{_SPARK}/test_time.py::test_an_idle_input_holds_no_join_back_across_a_restart_and_takes_part_again_when_it_returns",
    ),
    "state-changes": _fault(
        "changes of an app that its state does not take",
        "tests/chaos/test_state_corpus.py",
        f"{_SPARK}/test_state_changes.py",
        f"{_SPARK}/test_source_changes.py",
    ),
    "earlier-releases": _fault("checkpoints of earlier releases", f"{_SPARK}/test_earlier_releases.py"),
    "interruptions": _fault("interruption messages of EC2", "tests/infra/test_interruptions.py"),
    "two-deploys": _fault(
        "two deploys at once",
        "tests/emulated/test_deploy.py::test_of_two_deploys_at_once_the_second_says_who_holds_the_lock_and_how_to_go_on",
    ),
    "own-rights": _fault(
        "S3, KMS, Secrets Manager and Kafka deny what the statements of a job's own role don't allow", "tests/chaos/test_own_rights.py"
    ),
    "killed-deploy": _fault("a deploy killed midway", "tests/chaos/test_killed_deploy.py"),
}


class Result(BaseModel):
    """What became of a fault.

    Args:
        tests: how many were run.
        failed: names of those that failed.
        times: how often the fault was injected; None: not counted.
        rows: rows that were compared, in all sinks; None: none were counted.
        lost: of these.
        doubled: rows beyond the first of each.
        recovered_s: from a fault, or its end, to the next commit.
        planned_s: what the plan says of these.
        took_s: of the run.
    """

    model_config = ConfigDict(frozen=True)

    tests: int
    failed: tuple[str, ...]
    times: int | None
    rows: int | None
    lost: int | None
    doubled: int | None
    recovered_s: tuple[float, ...]
    planned_s: tuple[float, ...]
    took_s: float

    @classmethod
    def of(cls, report: Path, took_s: float) -> Result:
        """From pytest's JUnit report."""
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        failed = tuple(str(case.get("name")) for case in cases if case.find("failure") is not None or case.find("error") is not None)

        def numbers(name: str) -> list[float]:
            return [float(str(one.get("value"))) for case in cases for one in case.iter("property") if one.get("name") == name]

        def total(name: str) -> int | None:
            return int(sum(found)) if (found := numbers(name)) else None

        counts = {name: total(name) for name in ("times", "rows", "lost", "doubled")}
        measured = {name: tuple(numbers(name)) for name in ("recovered_s", "planned_s")}
        return cls(tests=len(cases), failed=failed, took_s=took_s, **counts, **measured)

    @property
    def passed(self) -> bool:
        """Whether all tests were run and passed."""
        return self.tests > 0 and not self.failed


_COLUMNS = (
    Column("fault"),
    Column("what happens", wraps=True),
    Column("times", right=True),
    Column("rows", right=True),
    Column("lost", right=True),
    Column("doubled", right=True),
    Column("recovered", right=True),
    Column("planned", right=True),
    Column("took", right=True),
    Column("result"),
)


def rendered(results: dict[str, Result], screen: Screen) -> str:
    """The results as a table.

    Args:
        results: name of a fault -> what became of it.
        screen: where it is shown.
    """
    return "\n".join(table(_COLUMNS, [_row(name, result) for name, result in results.items()], screen)) + "\n"


def _row(name: str, result: Result) -> Row:
    counts: list[Cell] = ["-" if one is None else f"{one:,}" for one in (result.times, result.rows, result.lost, result.doubled)]
    verdict = Styled("passed", "green") if result.passed else Styled("FAILED", "red")
    recovered, planned = _median(result.recovered_s), _median(result.planned_s)
    return [name, FAULTS[name].title, *counts, recovered, planned, f"{result.took_s:,.0f} s", verdict]


def _median(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.1f} s" if seconds else "-"


def _run(name: str, seed: int, full: bool) -> Result:
    """Runs a fault's tests; what they say passes through."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-m",
            "",
            "-n0",
            "-v",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            f"--chaos-seed={seed}",
            *(["--full"] if full else []),
        ]
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        process = subprocess.Popen([sys.executable, "-m", "pytest", *options, *FAULTS[name].tests], env=environment)
        try:
            process.wait()
        except KeyboardInterrupt:
            # It has got the signal too, and ends what it has started.
            process.wait()
            raise
        took_s = time.monotonic() - began_s
        empty = Result(tests=0, failed=(), times=None, rows=None, lost=None, doubled=None, recovered_s=(), planned_s=(), took_s=took_s)
        return Result.of(report, took_s) if report.exists() else empty


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongOption(given=message, need="--fault, --seed, --full, --list", fix="./scripts/chaos --help")


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="scripts/chaos",
        description="Injects faults into a real engine, broker and S3, and compares every row.",
        epilog="All faults take some two hours on two cores; driver-points and driver-random together less than 40 minutes.",
    )
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME", help="a fault of --list; several with commas or repeated (all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is killed or refused at random (1)")
    parser.add_argument("--full", action="store_true", help="kill 100 times for each exactly-once sink")
    parser.add_argument("--list", action="store_true", help="say what the faults are and run nothing")
    options = parser.parse_args(argv)
    options.faults = list(_asked([name for text in options.fault for name in text.split(",")]))
    return options


def _asked(names: Sequence[str]) -> Iterator[str]:
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        raise WrongOption(path="--fault", given=", ".join(unknown), need=", ".join(FAULTS), fix="./scripts/chaos --list shows the faults")
    yield from (name for name in FAULTS if not names or name in names)


def main(argv: Sequence[str]) -> int:
    """Injects the faults that are asked for.

    Args:
        argv: the arguments after the program's name.

    Returns:
        The exit code: 0 all passed, 1 one failed, 2 a wrong option, 130 interrupted.
    """
    try:
        options = _parse(argv)
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    if options.list:
        print("\n".join(f"{name:<20} {FAULTS[name].title}" for name in options.faults))
        return 0
    results: dict[str, Result] = {}
    try:
        for name in options.faults:
            print(f"== {name}: {FAULTS[name].title}", flush=True)
            results[name] = _run(name, options.seed, options.full)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    finally:
        print("\n" + rendered(results, screen_of(sys.stdout, os.environ)), flush=True)
    return 0 if all(result.passed for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
