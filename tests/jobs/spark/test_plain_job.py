"""docs/dataframes.md: the plain job, and what it becomes step by step, give the same rows."""

from __future__ import annotations

import importlib
import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.scripts import layout
from penstock.scripts.local import kafka_topics, recorded_run
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

PAGE = layout.ROOT / "docs" / "dataframes.md"


@pytest.fixture
def page(surroundings: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """The page's files with topics of their own: the topics' prefix and the folder."""
    prefix = f"t{uuid.uuid4().hex[:8]}"
    blocks = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for name, text in blocks:
        for topic in ("plain-counts", "clicks-counts", "clicks-errors"):
            text = text.replace(topic, f"{prefix}-{topic}")
        text = text.replace('"subscribe": "clicks"', f'"subscribe": "{prefix}"').replace("topic: clicks,", f"topic: {prefix},")
        (tmp_path / name).write_text(text.replace("name: clicks}", f"name: {prefix}}}"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    topics = [prefix, *(f"{prefix}-{topic}" for topic in ("clicks-errors", "clicks-counts", "plain-counts"))]
    kafka_topics.create(surroundings.brokers, dict.fromkeys(topics, 1))
    return prefix, tmp_path


def _click(time: str, page: str) -> dict[str, Any]:
    return {"user": "u", "page": page, "at": f"2025-04-05T12:{time}Z"}


CLICKS = [_click("30:00", "/a"), _click("30:01", "/b"), _click("30:59", "/a"), _click("30:30", "/health"), _click("31:00", "/a")]
# It closes what is before it; in a micro-batch without rows after it.
LAST = _click("33:00", "/end")


def test_the_plain_job_and_each_step_give_the_same_rows(surroundings: Surroundings, page: tuple[str, Path]) -> None:
    prefix, folder = page
    job = TestedJob(surroundings, prefix, folder / "clicks.yaml", {"clicks": prefix})
    job.feed("clicks", *CLICKS, LAST)
    plain = importlib.import_module("plain_clicks")
    try:
        plain.start(surroundings.session, surroundings.brokers, f"s3a://{CHECKPOINTS}/{prefix}/plain").awaitTermination()
        expected = _counts(surroundings, f"{prefix}-plain-counts")
        assert [(row["page"], row["clicks"]) for row in expected] == [("/a", 2), ("/b", 1), ("/a", 1)]
        # A plain job parses this to a row of nulls.
        job.feed("clicks", b"broken")
        for number, app in enumerate(("clicks_by_page", "clicks_by_block")):
            _run(job, app, f"{prefix}-{number}")
            times = number + 1
            assert _counts(surroundings, f"{prefix}-clicks-counts") == _sorted(expected * times)
            errors = recorded_run.topic_rows(surroundings.brokers, f"{prefix}-clicks-errors")
            assert [error["value"] for error in errors] == ["broken"] * times
    finally:
        importlib.invalidate_caches()


def _run(job: TestedJob, app: str, name: str) -> None:
    document = yaml.safe_load(job.spec.read_text(encoding="utf-8"))
    document["metadata"]["name"], document["spec"]["app"] = name, app
    job.spec.write_text(yaml.safe_dump(document), encoding="utf-8")
    job.name = name
    with job.running() as running:
        running.wait("stopped")


def _counts(surroundings: Surroundings, topic: str) -> list[dict[str, Any]]:
    return _sorted(list(recorded_run.topic_rows(surroundings.brokers, topic)))


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By content: the order of a micro-batch's windows in a topic is not defined."""
    return sorted(rows, key=lambda row: (row["start"], json.dumps(row)))
