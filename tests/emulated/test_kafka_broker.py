"""The local Kafka broker: it answers, says why where it can't, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from penstock.jobs.local.recording import Record
from penstock.scripts.errors import BrokerDied, BrokerNotReady, InputFailed, MissingTool, PortInUse, TopicsNotCreated
from penstock.scripts.local import class_data, kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.sizing.errors import PenstockError

# For what has no event to wait for; nothing here takes this long.
WITHIN_S = 60


def _there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as asking:
        return asking.connect_ex((host, int(port))) == 0


def _wait_for_its_end(broker: KafkaBroker) -> None:
    until_s = time.monotonic() + WITHIN_S
    while broker.alive():
        assert time.monotonic() < until_s
        os.sched_yield()


def test_it_answers_on_the_loopback_alone(broker: KafkaBroker) -> None:
    brokers = AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=WITHIN_S).brokers
    assert [(str(one.host), one.port) for one in brokers.values()] == [("127.0.0.1", int(broker.address.split(":")[1]))]
    broker.check()


def test_its_jvm_maps_the_archive_of_kafkas_classes(broker: KafkaBroker) -> None:
    """A JVM unmaps one that does not fit, without a word."""
    archive = str(class_data.kafka().file)
    mapped = Path(f"/proc/{broker.pid}/maps").read_text(encoding="utf-8")
    assert re.search(f" r--p .* {re.escape(archive)}$", mapped, re.MULTILINE)


def test_a_cluster_id_that_begins_with_a_hyphen_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One id in 64 does: base64 writes 62 as a hyphen.
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=bytes([62 << 2, *range(15)])))
    with KafkaBroker(folder=tmp_path / "data", log=tmp_path / "kafka.log") as running:
        assert running.alive()


def test_a_topic_has_the_partitions_asked_for_and_keeps_what_is_fed_in_its_order(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"ordered": 3})
    records = [Record(b"%d" % number, partition=number % 3, flush=number >= 297) for number in range(300)]
    fed = kafka_topics.feed(broker.address, "ordered", 3, records, lambda _: None)
    assert (fed.partitions, fed.records, fed.ends) == (3, 297, {0: 100, 1: 100, 2: 100})
    read = kafka_topics.recorded(kafka_topics.read(broker.address, "ordered"), fed.flush)
    assert [(r.partition, r.offset, r.value, r.flush) for r in read] == [
        (partition, offset, b"%d" % (3 * offset + partition), offset == 99) for partition in range(3) for offset in range(100)
    ]


def test_all_partitions_of_a_new_topic_can_be_read(broker: KafkaBroker) -> None:
    # The broker names their leaders before these know of it: with so many, one of them did not in every run.
    kafka_topics.create(broker.address, {"many-partitions": 100})
    assert kafka_topics.read(broker.address, "many-partitions") == []


def test_only_what_lies_before_the_given_ends_is_read(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"cut": 2})
    kafka_topics.feed(broker.address, "cut", 2, [Record(b"%d" % n, partition=0) for n in range(5)], lambda _: None)
    assert [message.value() for message in kafka_topics.read(broker.address, "cut", {0: 3})] == [b"0", b"1", b"2"]
    assert kafka_topics.read(broker.address, "cut", {}) == []


def test_records_of_old_days_tombstones_and_keys_are_kept(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"kept": 1})
    kafka_topics.feed(broker.address, "kept", 1, [Record(None, key=b"k"), Record(b"", partition=0)], lambda _: None)
    read = kafka_topics.recorded(kafka_topics.read(broker.address, "kept"), frozenset())
    assert [(record.key, record.value) for record in read] == [(b"k", None), (None, b"")]


def test_records_without_key_and_partition_take_turns(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"turns": 4})
    fed = kafka_topics.feed(broker.address, "turns", 4, [Record(b"x")] * 40, lambda _: None)
    assert fed.ends == {0: 10, 1: 10, 2: 10, 3: 10}


def test_a_topic_that_the_broker_refuses_is_told_and_so_are_the_others(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"there": 1})
    with pytest.raises(PenstockError) as raised:
        kafka_topics.create(broker.address, {"there": 1, "not a name": 1, "good": 1})
    faults = raised.value.errors
    assert {type(fault) for fault in faults} == {TopicsNotCreated}
    assert [(fault.code, fault.path) for fault in faults] == [("RUN-012", "topic there"), ("RUN-012", "topic not a name")]
    assert "already exists" in faults[0].given


def test_a_record_for_a_partition_that_is_not_there_is_told(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"narrow": 1})
    with pytest.raises(InputFailed) as raised:
        kafka_topics.feed(broker.address, "narrow", 1, [Record(b"good", partition=0), Record(b"bad", partition=7)], lambda _: None)
    assert (raised.value.code, raised.value.path) == ("RUN-013", "topic narrow")
    assert raised.value.given == "a record of 3 bytes: Unable to produce message: Local: Unknown partition"


def test_a_feeder_goes_on_after_a_record_that_was_refused(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"kept-on": 1})
    feeder = kafka_topics.Feeder(broker.address)
    with pytest.raises(InputFailed):
        feeder.feed("kept-on", 1, [Record(b"bad", partition=7)], lambda _: None)
    fed = feeder.feed("kept-on", 1, [Record(b"one"), Record(b"two")], lambda _: None)
    assert (fed.records, fed.ends) == (2, {0: 2})
    assert [message.value() for message in kafka_topics.read(broker.address, "kept-on")] == [b"one", b"two"]


def test_a_feeder_knows_of_partitions_that_were_added_since_its_last_record(broker: KafkaBroker) -> None:
    kafka_topics.create(broker.address, {"grown": 1})
    feeder = kafka_topics.Feeder(broker.address)
    feeder.feed("grown", 1, [Record(b"one")], lambda _: None)
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_partitions([NewPartitions("grown", 2)])["grown"].result(30)
    kafka_topics.wait_for_leaders(admin, {"grown": 2})
    assert feeder.feed("grown", 2, [Record(b"two", partition=1)], lambda _: None).ends == {1: 1}


def test_a_port_in_use_is_reported_with_the_option_that_chooses_another(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUse) as raised:
            KafkaBroker(folder=tmp_path / "data", log=tmp_path / "log", port=port).start()
    error = raised.value
    assert (error.code, error.path, error.given) == ("RUN-002", f"127.0.0.1:{port}", "Address already in use")
    assert "--kafka-port" in error.fix
    assert not (tmp_path / "data").exists()


def test_a_broker_that_is_killed_midway_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    with KafkaBroker(folder=tmp_path / "data", log=log) as broker:
        os.kill(broker.pid, signal.SIGKILL)
        _wait_for_its_end(broker)
        with pytest.raises(BrokerDied) as raised:
            broker.check()
        error = raised.value
        assert (error.code, error.exit_code, error.path) == ("RUN-010", 5, "kafka")
        assert f"code {-signal.SIGKILL}" in error.given and str(log) in error.given
        assert log.read_text(encoding="utf-8").splitlines()[-1] in error.given
    assert not (tmp_path / "data").exists()


def test_nothing_is_left_after_its_end(tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    with KafkaBroker(folder=tmp_path / "data", log=tmp_path / "kafka.log") as broker:
        pid, address = broker.pid, broker.address
        kafka_topics.create(address, {"events": 1})
        kafka_topics.feed(address, "events", 1, [Record(b"x")], lambda _: None)
        assert _there(pid) and _listens(address) and (tmp_path / "data").exists()
    assert not _there(pid)
    assert not _listens(address)
    assert set(tmp_path.iterdir()) - before == {tmp_path / "kafka.log"}
    broker.stop()


def test_a_data_folder_that_cannot_be_formatted_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "data").mkdir(parents=True)
    # What Kafka writes first is in the way.
    (data / "data" / "meta.properties").mkdir()
    with pytest.raises(BrokerDied) as raised:
        KafkaBroker(folder=data, log=tmp_path / "log").start()
    assert "StorageTool exited with code" in raised.value.given
    assert not data.exists()


def _java(folder: Path, script: str) -> str:
    """A JAVA_HOME whose java is a shell script."""
    java = folder / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    java.chmod(0o755)
    return str(folder / "home")


def test_a_broker_that_does_not_answer_in_time_is_told_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", _java(tmp_path, 'case "$*" in *StorageTool*) exit 0;; esac; exec sleep 1000'))
    broker = KafkaBroker(folder=tmp_path / "data", log=tmp_path / "log", start_limit_s=0.5)
    with pytest.raises(BrokerNotReady) as raised:
        broker.start()
    assert (raised.value.code, raised.value.need) == ("RUN-011", "a response within 0.5 s")
    assert not _there(broker.pid)
    assert not (tmp_path / "data").exists()


def test_a_format_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", _java(tmp_path, "exec sleep 1000"))
    with pytest.raises(BrokerNotReady) as raised:
        KafkaBroker(folder=tmp_path / "data", log=tmp_path / "log", start_limit_s=0.2).start()
    assert raised.value.need == "a formatted data directory within 0.2 s"


def test_a_java_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with pytest.raises(MissingTool) as raised:
        KafkaBroker(folder=tmp_path / "data", log=tmp_path / "log").start()
    error = raised.value
    assert (error.code, error.exit_code) == ("TOOL-001", 4)
    assert error.given == f"{tmp_path / 'no-java' / 'bin' / 'java'}: No such file or directory"


def test_a_free_port_that_another_process_takes_first_is_chosen_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = KafkaBroker(folder=tmp_path / "data", log=tmp_path / "kafka.log")
    with socket.create_server(("127.0.0.1", 0)) as quicker:
        taken, chosen = quicker.getsockname()[1], broker._ports
        answers = iter([(taken, chosen()[1])])
        monkeypatch.setattr(broker, "_ports", lambda: next(answers, None) or chosen())
        with broker:
            assert broker.address != f"127.0.0.1:{taken}"
            broker.check()
    assert "Address already in use" in (tmp_path / "kafka.log").read_text(encoding="utf-8")
