from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from penstock.scripts.security import waivers
from penstock.scripts.security.errors import BadWaivers, ExpiredWaiver, UnusedWaiver, WaiverTwice
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.gate import WAIVERS
from penstock.scripts.security.waivers import Waiver
from penstock.sizing.errors import Faults, PenstockError

TODAY = datetime.date(2026, 11, 21)
FINDING = Finding(rule="CKV_AWS_144", path="checkpoints/aws_s3_bucket.output", says="replication", digest="0123456789abcdef")
WAIVER = """
[[waiver]]
rule = "CKV_AWS_144"
path = "checkpoints/aws_s3_bucket.output"
digests = ["0123456789abcdef"]
reason = "One region is what this environment promises."
expires = 2027-11-21
"""


def _file(folder: Path, text: str) -> Path:
    file = folder / "waivers.toml"
    file.write_text(text, encoding="utf-8")
    return file


def _kinds(errors: list[PenstockError]) -> list[type[PenstockError]]:
    return [type(one) for one in errors]


def test_a_waiver_covers_its_rule_on_its_path_alone(tmp_path: Path) -> None:
    (waiver,) = waivers.read(_file(tmp_path, WAIVER))
    assert waiver.covers(FINDING)
    assert not waiver.covers(FINDING.model_copy(update={"rule": "CKV_AWS_145"}))
    assert not waiver.covers(FINDING.model_copy(update={"path": "checkpoints/aws_s3_bucket.output2"}))


def test_a_waiver_covers_an_object_only_as_it_was(tmp_path: Path) -> None:
    (waiver,) = waivers.read(_file(tmp_path, WAIVER))
    changed = FINDING.model_copy(update={"digest": "fedcba9876543210"})
    assert waiver.names(changed)
    assert not waiver.covers(changed)
    # It is not unused: the changed object is the finding.
    assert waivers.faults([waiver], [changed], ["checkpoints"], TODAY) == []


@pytest.mark.parametrize("digests", ["[]", '["0123456789abcdef", "short"]', '"0123456789abcdef"'])
def test_a_waiver_without_digests_is_refused(tmp_path: Path, digests: str) -> None:
    with pytest.raises(BadWaivers, match="digests"):
        waivers.read(_file(tmp_path, WAIVER.replace('["0123456789abcdef"]', digests)))


def test_a_star_matches_any_suffix(tmp_path: Path) -> None:
    (waiver,) = waivers.read(_file(tmp_path, WAIVER.replace("aws_s3_bucket.output", "aws_s3_bucket.*")))
    assert waiver.covers(FINDING)
    assert not waiver.covers(FINDING.model_copy(update={"path": "kafka/aws_s3_bucket.output"}))


def test_a_waiver_that_covers_nothing_is_a_fault_where_its_part_was_scanned(tmp_path: Path) -> None:
    content = waivers.read(_file(tmp_path, WAIVER))
    assert waivers.faults(content, [FINDING], ["checkpoints"], TODAY) == []
    assert _kinds(waivers.faults(content, [], ["checkpoints"], TODAY)) == [UnusedWaiver]
    # A scan of an environment without charts does not check the waivers of charts.
    assert waivers.faults(content, [], ["network"], TODAY) == []


def test_a_waiver_that_needs_another_object_is_unused_only_where_that_is(tmp_path: Path) -> None:
    needs = "checkpoints/aws_s3_bucket.logs"
    content = waivers.read(_file(tmp_path, f'{WAIVER.rstrip()}\nneeds = "{needs}"\n'))
    assert waivers.faults(content, [], ["checkpoints"], TODAY) == []
    assert _kinds(waivers.faults(content, [], ["checkpoints", needs], TODAY)) == [UnusedWaiver]


@pytest.mark.parametrize(("day", "kinds"), [("2026-11-21", []), ("2026-11-20", [ExpiredWaiver])])
def test_a_waiver_holds_up_to_its_last_day(tmp_path: Path, day: str, kinds: list[type[PenstockError]]) -> None:
    content = waivers.read(_file(tmp_path, WAIVER.replace("2027-11-21", day)))
    assert _kinds(waivers.faults(content, [FINDING], ["checkpoints"], TODAY)) == kinds


def test_the_same_waiver_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WaiverTwice):
        waivers.read(_file(tmp_path, WAIVER + WAIVER))


def test_all_errors_of_waivers_are_reported_together(tmp_path: Path) -> None:
    text = WAIVER.replace('"One region is what this environment promises."', '"why not"').replace("CKV_AWS_144", "S3.1")
    with pytest.raises(Faults) as raised:
        waivers.read(_file(tmp_path, text))
    assert {type(fault) for fault in raised.value.errors} == {BadWaivers}
    assert {fault.path.rsplit(".", 1)[-1] for fault in raised.value.errors} == {"rule", "reason"}


def test_a_waiver_without_a_last_day_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadWaivers, match="expires"):
        waivers.read(_file(tmp_path, "\n".join(line for line in WAIVER.splitlines() if "expires" not in line)))


@pytest.mark.parametrize("text", ["[[waiver", "\xff\xfe".encode("latin-1").decode("latin-1") + "[[["])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadWaivers):
        waivers.read(_file(tmp_path, text))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadWaivers, match=r"none\.toml"):
        waivers.read(tmp_path / "none.toml")


def test_the_shipped_waivers_can_be_read_and_last_no_longer_than_a_year_and_a_half() -> None:
    shipped: tuple[Waiver, ...] = waivers.read(WAIVERS)
    assert all(waiver.expires <= TODAY + datetime.timedelta(days=550) for waiver in shipped)
