"""What `penstock up` refuses before it starts anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.scripts.local.machine import too_many
from tests.scripts.cli.called import Called, penstock

SPEC = """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: penstock.jobs.apps.user_credit
  parallelism: 2
  executor: {slots: 2, memory: 2g}
"""


def _up(*arguments: object) -> Called:
    return penstock("up", *map(str, arguments), environment=os.environ)


def test_two_specs_with_one_name_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    for path in (one, other):
        path.write_text(SPEC, encoding="utf-8")
    ran = _up(one, other, "--keep")
    assert ran.returncode == 2
    assert f"at   {other}:4  metadata.name" in ran.stderr
    assert f"{one} already uses this one" in ran.stderr


def test_a_spec_without_local_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC, encoding="utf-8")
    ran = _up(path)
    assert ran.returncode == 2
    assert "error[SPEC-005]" in ran.stderr
    assert "spec.local.input" in ran.stderr


def test_the_faults_of_all_specs_come_at_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(SPEC.replace("2g", "2Gib"), encoding="utf-8")
    other.write_text(SPEC.replace("penstock.jobs.apps.user_credit", "penstock.jobs.apps.user_debit"), encoding="utf-8")
    ran = _up(one, other)
    assert ran.returncode == 2
    assert "error[SPEC-007]" in ran.stderr
    assert "error[SPEC-009]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_port_that_is_none_is_wrong_usage() -> None:
    ran = _up("jobs/specs/flights.yaml", "--kafka-port", "99999")
    assert ran.returncode == 2
    assert "99999" in ran.stderr


def test_two_jobs_that_are_fed_through_one_topic_are_refused() -> None:
    ran = _up("jobs/specs/banking_split.yaml", "jobs/specs/banking_totals.yaml")
    assert ran.returncode == 2
    assert "error[SPEC-008]" in ran.stderr
    assert "local.input.transactions" in ran.stderr
    assert "banking-split has input for them" in ran.stderr


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5", ""])
def test_a_number_of_executors_that_is_none_is_wrong_usage(number: str) -> None:
    ran = _up("jobs/specs/flights.yaml", f"--executors={number}")
    assert ran.returncode == 2
    assert "error[USE-001]" in ran.stderr
    assert f"{number!r} is not a number of executors: use 1 or more" in ran.stderr


def test_more_executors_than_the_machine_carries_are_refused_with_the_other_faults() -> None:
    ran = _up("jobs/specs/banking_split.yaml", "jobs/specs/banking_totals.yaml", "--executors", "1000")
    assert ran.returncode == 2
    assert "error[RUN-042]" in ran.stderr
    assert "error[SPEC-008]" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "need"),
    [
        ((), "--executors N"),
        (("jobs/specs/user_credit.yaml", "--executors", "1", "--keep"), "a single spec with --keep"),
    ],
)
def test_a_port_of_no_master_or_of_several_is_wrong_usage(arguments: tuple[str, ...], need: str) -> None:
    ran = _up("jobs/specs/flights.yaml", *arguments, "--master-port", "7077")
    assert ran.returncode == 2
    assert "error[USE-001]" in ran.stderr
    assert need in ran.stderr


def test_jobs_that_are_kept_up_need_the_machine_at_the_same_time() -> None:
    # As many as fit, for one job.
    most = next(number for number in range(1_000, 0, -1) if not too_many(number))
    ran = _up("jobs/specs/banking_split.yaml", "jobs/specs/banking_totals.yaml", "--executors", str(most), "--keep")
    assert ran.returncode == 2
    assert f"--executors = {2 * most}" in ran.stderr
