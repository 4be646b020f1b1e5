"""``penstock topics`` on a real broker: what is planned is done, once, and nothing shrinks or is lost unasked."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import uuid
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.local.recording import Record
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES
from penstock.scripts.cli.command import main
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.layout import ROOT
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.topics.address import access
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import ExistingTopic
from penstock.scripts.topics.errors import BrokersNotReached, KafkaClusterNotFound
from tests.infra.environments import written

LIMIT_S = 120


class Done(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Desk:
    """An environment with one job, whose topics no other test has."""

    folder: Path
    broker: str
    name: str

    def write(self, partitions: int = 2, **topics: Any) -> None:
        """The job's spec with settings for its topics `read` and `out`."""
        (self.folder / "app.py").write_text("")
        kafka = {"topic": self.topic("read"), "partitions": partitions}
        spec = {
            "app": "app",
            "parallelism": 2,
            "executor": {"slots": 2, "memory": "8g"},
            "sources": {"a": {"kafka": kafka}},
            "sinks": {"out": {"kafka": {"topic": self.topic("out")}}},
            "topics": {self.topic(role): settings for role, settings in topics.items()},
        }
        document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": self.name}, "spec": spec}
        (self.folder / "job.yaml").write_text(yaml.safe_dump(document))

    def topic(self, role: str) -> str:
        return f"{self.name}-{role}"

    def words(self, action: str, *more: str) -> list[str]:
        return ["topics", action, str(self.folder / "environment.yaml"), "--brokers", self.broker, *more]

    def run(self, action: str, *more: str) -> Done:
        """The command, in this process; nobody can be asked."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(self.words(action, *more))
        return Done(code, out.getvalue(), err.getvalue())

    def planned(self) -> dict[str, dict[str, Any]]:
        """Role of a topic -> its plan."""
        done = self.run("plan", "-o", "json")
        assert done.returncode == 0, done.stderr + done.stdout
        return {topic["name"].rpartition("-")[2]: topic for topic in json.loads(done.stdout)["topics"]}

    def apply(self, *more: str) -> None:
        done = self.run("apply", "--yes", *more)
        assert done.returncode == 0, done.stderr

    def existing(self) -> dict[str, ExistingTopic]:
        """Role of a topic -> as the broker has it."""
        existing = TopicBrokers(KafkaAccess(self.broker)).existing([self.topic("read"), self.topic("out")])
        return {name.rpartition("-")[2]: topic for name, topic in existing.items()}


@pytest.fixture
def desk(broker: KafkaBroker, tmp_path: Path) -> Desk:
    def one_broker(spec: dict[str, Any]) -> None:
        spec.update(jobs=["job.yaml"], kafka={"kind": "external", "security": "plaintext", "replication": 1, "retention": "6h"})

    written(tmp_path, one_broker)
    made = Desk(tmp_path, broker.address, f"t{uuid.uuid4().hex[:8]}")
    made.write()
    return made


def test_a_plan_changes_nothing_and_an_apply_does_what_it_says(desk: Desk) -> None:
    assert {role: topic["actions"] for role, topic in desk.planned().items()} == {"read": ["create"], "out": ["create"]}
    assert desk.existing() == {}
    desk.apply()
    existing = desk.existing()
    assert (existing["read"].partitions, existing["read"].replication, existing["read"].config["retention.ms"]) == (2, 1, "21600000")
    assert (existing["out"].partitions, existing["out"].config["max.message.bytes"]) == (1, str(MAX_RECORD_BYTES))


def test_a_second_apply_has_nothing_to_do(desk: Desk) -> None:
    desk.apply()
    done = desk.run("apply")
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 to create, 0 to grow, 0 to set, 2 unchanged, 0 refused" in done.stdout
    assert {role: topic["actions"] for role, topic in desk.planned().items()} == {"read": [], "out": []}


def test_a_topic_grows_with_its_records_and_settings_kept(desk: Desk) -> None:
    desk.apply()
    kafka_topics.feed(desk.broker, desk.topic("read"), 2, [Record(b"%d" % n, partition=n % 2) for n in range(10)], lambda _: None)
    desk.write(partitions=5)
    assert desk.planned()["read"]["partitions"] == {"before": 2, "after": 5}
    desk.apply()
    existing = desk.existing()["read"]
    assert (existing.partitions, existing.config["retention.ms"]) == (5, "21600000")
    assert len(kafka_topics.read(desk.broker, desk.topic("read"))) == 10


def test_named_settings_change_and_all_others_are_kept(desk: Desk) -> None:
    desk.apply()
    desk.write(out={"config": {"compression.type": "zstd", "segment.ms": 3_600_000}}, read={"retention": "7d"})
    changed = desk.planned()
    assert changed["read"]["config"] == {"retention.ms": {"before": "21600000", "after": "604800000"}}
    desk.apply()
    written_to, read_from = desk.existing()["out"].config, desk.existing()["read"].config
    assert (written_to["compression.type"], written_to["segment.ms"], written_to["max.message.bytes"]) == (
        "zstd",
        "3600000",
        str(MAX_RECORD_BYTES),
    )
    assert read_from["retention.ms"] == "604800000"
    desk.write()
    assert {role: topic["actions"] for role, topic in desk.planned().items()} == {"read": [], "out": []}


def test_a_compacted_topic_is_made_and_takes_no_record_without_a_key(desk: Desk) -> None:
    desk.write(out={"cleanupPolicy": "compact", "partitions": 3})
    desk.apply()
    existing = desk.existing()["out"]
    assert (existing.partitions, existing.config["cleanup.policy"]) == (3, "compact")
    desk.write(out={"cleanupPolicy": "compact-delete", "retention": "1d", "partitions": 3})
    refused = desk.run("apply", "--yes")
    assert refused.returncode == 1 and "TOP-001" in refused.stderr
    assert desk.existing()["out"] == existing


def test_partitions_never_shrink_and_nothing_else_is_done_meanwhile(desk: Desk) -> None:
    desk.write(partitions=4)
    desk.apply()
    desk.write(out={"retention": "7d"})
    for action in (("plan",), ("apply", "--yes")):
        refused = desk.run(*action)
        assert refused.returncode == 1
        assert f"error[TOP-001]: topic change refused\n  at   topic {desk.topic('read')} = 2 partitions" in refused.stderr
    assert (desk.existing()["read"].partitions, desk.existing()["out"].config["retention.ms"]) == (4, "21600000")


def test_records_are_given_up_only_in_so_many_words(desk: Desk) -> None:
    desk.apply()
    desk.write(read={"retention": "1h"})
    assert desk.run("apply", "--yes").returncode == 1
    assert desk.existing()["read"].config["retention.ms"] == "21600000"
    desk.apply("--lose-records")
    assert desk.existing()["read"].config["retention.ms"] == "3600000"


def test_an_unknown_setting_is_reported_by_the_plan_and_changes_nothing(desk: Desk) -> None:
    desk.write(out={"config": {"retenton.ms": 5}})
    for action in (("plan",), ("apply", "--yes")):
        refused = desk.run(*action)
        assert refused.returncode == 5
        assert f"at   create {desk.topic('out')} = Unknown topic config name: retenton.ms" in refused.stderr
    assert desk.existing() == {}
    document = json.loads(desk.run("plan", "-o", "json").stdout)
    assert [fault["code"] for fault in document["errors"]] == ["TOP-003"]


def test_more_replicas_than_brokers_are_reported_once_for_all_topics(desk: Desk) -> None:
    refused = desk.run("plan", "--replication", "3")
    assert refused.returncode == 5
    assert f"create {desk.topic('read')}, {desk.topic('out')} = " in refused.stderr
    assert refused.stderr.count("error[") == 1


def test_an_apply_that_ended_midway_is_gone_on_with(desk: Desk) -> None:
    # As after an interruption: the first topic is there, the second is not.
    kafka_topics.create(desk.broker, {desk.topic("read"): 2})
    assert {role: topic["actions"] for role, topic in desk.planned().items()} == {"read": [], "out": ["create"]}
    desk.apply()
    assert set(desk.existing()) == {"read", "out"}


def test_without_a_terminal_yes_is_required(desk: Desk) -> None:
    refused = desk.run("apply")
    assert (refused.returncode, desk.existing()) == (2, {})
    assert "--yes if stdin is not a terminal" in refused.stderr
    assert json.loads(desk.run("apply", "-o", "json").stdout)["errors"][0]["code"] == "USE-001"


def test_programs_read_what_was_done(desk: Desk) -> None:
    done = desk.run("apply", "--yes", "-o", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["schemaVersion"], document["applied"], document["errors"]) == (0, 1, True, [])
    assert [topic["actions"] for topic in document["topics"]] == [["create"], ["create"]]
    assert set(desk.existing()) == {"read", "out"}


def _answered(desk: Desk, answer: bytes | None) -> tuple[int, str]:
    """Exit code and what is shown, on a terminal on which somebody answers, or presses Ctrl-C."""
    ours, theirs = pty.openpty()
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "dumb"}
    command = [sys.executable, "-m", "penstock.scripts", *desk.words("apply")]
    with subprocess.Popen(command, env=variables, stdin=theirs, stdout=theirs, stderr=theirs) as asked:
        os.close(theirs)
        shown, said = b"", False
        try:
            while select.select([ours], [], [], LIMIT_S)[0] and (some := os.read(ours, 4096)):
                shown += some
                if not said and b"[y/N]: " in shown:
                    _wait_until_it_reads(asked.pid)
                    asked.send_signal(signal.SIGINT) if answer is None else os.write(ours, answer)
                    said = True
        except OSError:
            # Linux: the other end is closed.
            pass
        code = asked.wait(LIMIT_S)
    os.close(ours)
    return code, shown.decode()


def _wait_until_it_reads(pid: int) -> None:
    """Python looks at a signal that comes between the prompt and the read only when the read returns."""
    until_s = time.monotonic() + LIMIT_S
    # The number of read on x86-64 and on arm64, and its file. Source: proc(5).
    while Path(f"/proc/{pid}/syscall").read_text(encoding="utf-8").split()[:2] not in (["0", "0x0"], ["63", "0x0"]):
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_on_a_terminal_it_asks_and_does_it_only_for_a_yes(desk: Desk) -> None:
    code, shown = _answered(desk, b"no\n")
    assert (code, desk.existing()) == (1, {})
    assert "TOP-007" in shown
    code, shown = _answered(desk, b"yes\n")
    assert (code, set(desk.existing())) == (0, {"read", "out"})
    assert f"create {desk.topic('out')}: done" in shown


def test_an_interruption_at_the_question_changes_nothing(desk: Desk) -> None:
    code, shown = _answered(desk, None)
    assert (code, desk.existing()) == (130, {})
    assert "interrupted" in shown


def test_msks_brokers_are_found_by_the_environments_name(broker: KafkaBroker, tmp_path: Path) -> None:
    with EmulatedAws(log=tmp_path / "aws.log", brokers=broker.address) as aws:
        environment = load("local").at(aws.endpoint)
        with pytest.raises(KafkaClusterNotFound) as raised:
            access(environment, None, None, None)
        assert (raised.value.code, raised.value.given) == ("TOP-005", "no MSK cluster has this name")
        # One whose name only begins alike is another environment's.
        for cluster in ("penstock-local-2", environment.prefix):
            _serverless(environment, cluster)
        assert access(environment, None, None, None) == KafkaAccess(broker.address, "plaintext", "us-east-1")


def _serverless(environment: Environment, name: str) -> None:
    aws = AwsAccess(environment)
    subnets = [subnet["SubnetId"] for subnet in aws.client("ec2").describe_subnets()["Subnets"][:3]]
    iam = {"Sasl": {"Iam": {"Enabled": True}}}
    serverless = {"VpcConfigs": [{"SubnetIds": subnets}], "ClientAuthentication": iam}
    aws.client("kafka").create_cluster_v2(ClusterName=name, Serverless=serverless)


def test_brokers_that_do_not_respond_are_reported_with_the_reason() -> None:
    with pytest.raises(BrokersNotReached) as raised:
        TopicBrokers(KafkaAccess("127.0.0.1:1"), answer_s=2.0).existing(["clicks"])
    error = raised.value
    assert (error.code, error.exit_code) == ("TOP-002", 5)
    assert error.given.startswith("127.0.0.1:1: ")
    assert "Connection refused" in error.given
