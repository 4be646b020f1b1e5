"""``penstock sql`` as a process, on a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient

from penstock.jobs.local.recording import Record
from penstock.scripts.layout import ROOT
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.emulated.clicks import APP, LIMIT_S, SPEC, wait_until_gone
from tests.infra.environments import written


def _command(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir(exist_ok=True)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}
    variables.pop("PENSTOCK_ENVIRONMENT", None)
    words = (sys.executable, "-m", "penstock.scripts", "sql", *words)
    return subprocess.Popen(words, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_rows_are_shown_as_they_come_until_ctrl_c_and_nothing_is_left(broker: KafkaBroker, tmp_path: Path) -> None:
    topic = f"sql-{uuid.uuid4().hex[:8]}"
    (tmp_path / "clicks_app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "clicks.yaml").write_text(SPEC.partition("  local:")[0].replace("topic: clicks,", f"topic: {topic},"), encoding="utf-8")
    kafka_topics.create(broker.address, {topic: 2})
    groups = _groups(broker)
    kafka = {"kind": "external", "bootstrapServers": broker.address, "security": "plaintext", "replication": 1}
    environment = written(tmp_path, lambda spec: spec.update(jobs=[{"spec": str(tmp_path / "clicks.yaml")}], kafka=kafka))
    query = f"SELECT user, page FROM `{topic}` WHERE page <> '/health'"
    running = _command(tmp_path, str(environment), query, "--follow", "--from", "earliest", "-o", "json")
    try:
        assert running.stdout is not None
        for number, page in enumerate(("/", "/cart")):
            values = [
                json.dumps({"user": f"user-{number}", "at": "2025-04-05T12:00:00Z", "page": one}).encode() for one in ("/health", page)
            ]
            kafka_topics.feed(broker.address, topic, 2, [Record(value, partition=0) for value in values], lambda _: None)
            assert json.loads(running.stdout.readline()) == {"user": f"user-{number}", "page": page}
        running.send_signal(signal.SIGINT)
        rest, said = running.communicate(timeout=LIMIT_S)
    finally:
        running.kill()
    assert (running.returncode, rest) == (0, ""), said
    assert "Traceback" not in said
    wait_until_gone(tmp_path / "tmp")
    assert (list((tmp_path / "tmp").iterdir()), _groups(broker)) == ([], groups)


def _groups(broker: KafkaBroker) -> set[str]:
    admin = AdminClient({"bootstrap.servers": broker.address})
    return {group.group_id for group in admin.list_consumer_groups().result().valid}
