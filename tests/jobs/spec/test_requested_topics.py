"""``spec.topics``: requested settings of topics, of one job and of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.spec.requested_topics import AskedTopic, asked_topics
from penstock.jobs.targets import targets
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan import plan

HEAD = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: NAME}
spec:
  app: app
  parallelism: 7
  executor: {slots: 7, memory: 16g}
  sources:
    a: {kafka: {topic: clicks}}
  sinks:
    errors: {kafka: {topic: clicks-errors}}
"""


def spec_of(folder: Path, topics: str, name: str = "clicks", head: str = HEAD) -> SpecFile:
    (folder / "app.py").write_text("")
    path = folder / f"{name}.yaml"
    path.write_text(head.replace("NAME", name) + (f"  topics:\n{topics}" if topics else ""))
    return load(path)


def faults(folder: Path, topics: str, head: str = HEAD) -> list[tuple[str, int | None, str]]:
    with pytest.raises(PenstockError) as raised:
        spec_of(folder, topics, head=head)
    return [(fault.code, fault.at.line if fault.at else None, fault.path) for fault in raised.value.errors]


def test_a_topic_has_its_settings_by_kafkas_names(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        """\
    clicks: {partitions: 12, replication: 2, retention: 7d, cleanupPolicy: compact-delete, config: {min.insync.replicas: 1}}
    clicks-errors: {retention: forever, config: {compression.type: zstd, preallocate: true}}
""",
    )
    assert asked_topics([spec]) == {
        "clicks": AskedTopic(
            "clicks", 12, 2, {"retention.ms": "604800000", "cleanup.policy": "compact,delete", "min.insync.replicas": "1"}
        ),
        "clicks-errors": AskedTopic(
            "clicks-errors", None, None, {"retention.ms": "-1", "compression.type": "zstd", "preallocate": "true"}, written=True
        ),
    }


def test_missing_settings_are_not_requested(tmp_path: Path) -> None:
    assert asked_topics([spec_of(tmp_path, "")]) == {
        "clicks": AskedTopic("clicks"),
        "clicks-errors": AskedTopic("clicks-errors", written=True),
    }


def test_partitions_of_a_topic_are_those_of_the_plan(tmp_path: Path) -> None:
    decided = targets(spec_of(tmp_path, "    clicks: {partitions: 12}\n    clicks-errors: {partitions: 3}\n"))
    assert plan(decided).kafka.topics == {"clicks": 12, "clicks-errors": 3}


@pytest.mark.parametrize(
    ("topics", "code", "line", "path"),
    [
        ("    cliks: {partitions: 12}\n", "SPEC-008", 13, "spec.topics.cliks"),
        ("    clicks: {partition: 12}\n", "SPEC-004", 13, "spec.topics.clicks.partition"),
        ("    clicks: {partitions: 0}\n", "SPEC-006", 13, "spec.topics.clicks.partitions"),
        ("    clicks: {retention: 7}\n", "SPEC-007", 13, "spec.topics.clicks.retention"),
        ("    clicks: {cleanupPolicy: none}\n", "SPEC-006", 13, "spec.topics.clicks.cleanupPolicy"),
        ("    clicks:\n      config: {retention.ms: 5}\n", "SPEC-008", 14, "spec.topics.clicks.config.retention.ms"),
        ("    clicks:\n      config: {cleanup.policy: compact}\n", "SPEC-008", 14, "spec.topics.clicks.config.cleanup.policy"),
        ("    clicks:\n      config: {maxMessageBytes: 5}\n", "SPEC-006", 14, "spec.topics.clicks.config.maxMessageBytes"),
        (
            "    clicks:\n      replication: 2\n      config: {min.insync.replicas: 3}\n",
            "SPEC-008",
            15,
            "spec.topics.clicks.config.min.insync.replicas",
        ),
    ],
)
def test_an_error_of_a_topic_is_reported_with_its_line(tmp_path: Path, topics: str, code: str, line: int, path: str) -> None:
    assert faults(tmp_path, topics) == [(code, line, path)]


def test_partitions_that_stand_twice_have_to_agree(tmp_path: Path) -> None:
    twice = HEAD.replace("{topic: clicks}", "{topic: clicks, partitions: 4}").replace(
        "{topic: clicks-errors}", "{topic: clicks-errors, partitions: 2}"
    )
    assert faults(tmp_path, "    clicks: {partitions: 5}\n    clicks-errors: {partitions: 3}\n", head=twice) == [
        ("SPEC-008", 13, "spec.topics.clicks.partitions"),
        ("SPEC-008", 14, "spec.topics.clicks-errors.partitions"),
    ]
    assert spec_of(tmp_path, "    clicks: {partitions: 4}\n", head=twice).job.topics() == {"clicks": 4, "clicks-errors": 2}


def test_two_jobs_that_say_the_same_or_different_things_are_one_wish(tmp_path: Path) -> None:
    one = spec_of(tmp_path, "    clicks: {retention: 1d, replication: 3}\n", "one")
    other = spec_of(tmp_path, "    clicks: {retention: 24h, cleanupPolicy: delete}\n", "other")
    clicks = asked_topics([one, other])["clicks"]
    assert (clicks.replication, clicks.config) == (3, {"retention.ms": "86400000", "cleanup.policy": "delete"})


def test_all_settings_that_two_jobs_disagree_on_are_reported_with_both_places(tmp_path: Path) -> None:
    one = spec_of(tmp_path, "    clicks: {retention: 1d, partitions: 4}\n", "one")
    other = spec_of(tmp_path, "    clicks:\n      retention: 2d\n      partitions: 5\n", "other")
    with pytest.raises(PenstockError) as raised:
        asked_topics([one, other])
    errors = raised.value.errors
    assert [(fault.code, fault.path, str(fault.at)) for fault in errors] == [
        ("SPEC-013", "spec.topics.clicks.partitions", f"{tmp_path}/other.yaml:15"),
        ("SPEC-013", "spec.topics.clicks.retention", f"{tmp_path}/other.yaml:14"),
    ]
    assert errors[0].need == f"4, as one sets it in {tmp_path}/one.yaml:13"


def test_a_source_and_another_jobs_topic_disagree_too(tmp_path: Path) -> None:
    one = spec_of(tmp_path, "", "one", HEAD.replace("{topic: clicks}", "{topic: clicks, partitions: 4}"))
    other = spec_of(tmp_path, "    clicks: {partitions: 5}\n", "other")
    with pytest.raises(PenstockError) as raised:
        asked_topics([one, other])
    assert [(fault.code, fault.path) for fault in raised.value.errors] == [("SPEC-013", "spec.topics.clicks.partitions")]
