"""Apps that do not fit their specs, and missing surroundings: each is an error with a code, in the user's terms."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.kafka import brokers
from penstock.jobs.kafka.errors import BrokersUnreachable, TopicNotFound
from penstock.jobs.storage import s3 as s3_client
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.stream.errors import AppFailed
from penstock.scripts.layout import ROOT
from penstock.sizing.errors import PenstockError
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

COPY_ROWS = "tests.jobs.spark.apps.copy_rows"
SCHEMA = '"key STRING NOT NULL, at STRING"'
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Creates an app's module from the lines of its `build`; returns the module's name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(body: str) -> str:
        name = f"app_{uuid.uuid4().hex}"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (tmp_path / f"{name}.py").write_text(f"def build(job):\n{lines}", encoding="utf-8")
        return name

    return write


def _failure(job: TestedJob) -> PenstockError:
    with pytest.raises(PenstockError) as raised, job.running():
        pytest.fail("the query was started")
    return raised.value


def _without_time(spec: dict[str, Any]) -> None:
    del spec["sources"]["a"]["time"]


DECLARATIONS = {
    "an unknown source": (
        f'job.source("b", {SCHEMA})',
        ('job.source("b")', "a source of the spec: a"),
    ),
    "a source taken twice": (
        f'job.source("a", {SCHEMA})\njob.source("a", {SCHEMA})',
        ('job.source("a")', "each source once; a second call would read it twice"),
    ),
    "an unknown sink": (
        f'job.write(job.source("a", {SCHEMA}), "output")',
        ('job.write(..., "output")', "a sink of the spec: errors, late, out"),
    ),
    "a sink of two outputs": (
        f'rows = job.source("a", {SCHEMA})\njob.write(rows, "out")\njob.write(rows, "out")\njob.side_output("errors")',
        (
            'job.write(..., "out")',
            "a separate sink for each job.write: two queries would write the sink's files and manifests at the same time",
        ),
    ),
    "an output without a sink": (
        f'rows = job.source("a", {SCHEMA})\njob.write(rows, "out")\njob.write(rows, {{}})\njob.side_output("errors")',
        ("build", "job.write(stream, sink)"),
    ),
    "an unknown side output": (
        'job.side_output("mistakes")',
        ('job.side_output("mistakes")', "a sink of the spec: errors, late, out"),
    ),
    "a side output into files": (
        'job.side_output("out")',
        ('job.side_output("out")', "a Kafka or webhook sink"),
    ),
    "two sinks for a tag": (
        'job.side_output("errors")\njob.side_output("late")',
        ('job.side_output("late")', "one sink per tag; rows with the tag quarantined already go to errors"),
    ),
    "a side output for rows that are only counted": (
        'job.side_output("errors", "unmatched")',
        ('job.side_output("errors")', "a tag whose rows are kept; these are only counted"),
    ),
    "a tag with a comma": (
        'job.side_output("errors", "a,b")',
        ('job.side_output("errors")', "a tag without a comma, such as refunds"),
    ),
    "no output": (
        f'job.source("a", {SCHEMA})\njob.side_output("errors")',
        ("build", "job.write(stream, sink)"),
    ),
    "a sink for data and for what goes aside": (
        f'job.side_output("errors")\njob.write(job.source("a", {SCHEMA}), "errors")',
        ('job.side_output("errors")', "a separate sink for side outputs: a sink is written only once per micro-batch"),
    ),
    "nowhere to put what does not parse": (
        f'job.write(job.source("a", {SCHEMA}), "out")',
        ("build", 'job.side_output("...") for malformed records'),
    ),
}


@pytest.mark.parametrize(("body", "texts"), DECLARATIONS.values(), ids=list(DECLARATIONS))
def test_an_invalid_declaration_of_an_app_is_reported(
    surroundings: Surroundings, app: Callable[[str], str], body: str, texts: tuple[str, str]
) -> None:
    error = _failure(surroundings.job(app(body), sources={"a": 1}))
    assert isinstance(error, BadDeclaration)
    assert (error.code, error.exit_code, error.path, error.need) == ("JOB-004", 5, *texts)
    assert error.fix


def test_an_unused_source_of_the_spec_is_reported(surroundings: Surroundings) -> None:
    error = _failure(surroundings.job(COPY_ROWS, sources={"a": 1, "b": 1, "c": 1}))
    assert isinstance(error, BadDeclaration)
    assert error.need == "a job.source call for each source of the spec; unused: b, c"


@pytest.mark.parametrize("schema", ["key STRINGS", "key STRING NOT", "key STRING,", "", "key STRING; at STRING", "INT"])
def test_an_invalid_schema_is_reported_with_an_example(surroundings: Surroundings, app: Callable[[str], str], schema: str) -> None:
    error = _failure(surroundings.job(app(f'job.source("a", "{schema}")'), sources={"a": 1}))
    assert isinstance(error, BadDeclaration)
    assert (error.path, error.given) == ('job.source("a")', schema)
    assert error.fix == 'use a schema such as "user STRING NOT NULL, at STRING"'
    assert "JVM" not in error.render() and "Traceback" not in error.render()


@pytest.mark.parametrize("schema", ["key STRING, at STRING, Key STRING", "key STRING, at STRING, key INT"])
def test_fields_of_one_name_are_reported(surroundings: Surroundings, app: Callable[[str], str], schema: str) -> None:
    error = _failure(surroundings.job(app(f'job.source("a", "{schema}")'), sources={"a": 1}))
    assert isinstance(error, BadDeclaration)
    assert (error.path, error.given, error.need) == ('job.source("a")', schema, "fields whose names differ by more than case")


def test_files_by_date_of_rows_without_event_time_are_rejected(surroundings: Surroundings) -> None:
    error = _failure(surroundings.job(COPY_ROWS, sources={"a": 1}).edit(_without_time))
    assert isinstance(error, BadDeclaration)
    assert (error.path, error.need) == ('job.write(..., "out")', "event time, by which the files are partitioned")


def test_rows_without_event_time_go_to_files_without_date(surroundings: Surroundings) -> None:
    job = surroundings.job(COPY_ROWS, sources={"a": 1}).edit(_without_time)
    job.edit(lambda spec: spec["sinks"]["out"]["files"].update(bucketBy="none"))
    job.feed("a", {"key": "k", "name": "one"})
    with job.running() as running:
        running.until_read({"a": [1]})
    assert [row["name"] for row in job.rows()] == ["one"]
    (item,) = surroundings.s3.list_objects_v2(Bucket=OUTPUT, Prefix=f"{job.name}/")["Contents"]
    assert "/" not in item["Key"].removeprefix(f"{job.name}/")


def test_an_event_time_field_missing_in_the_schema_is_reported(surroundings: Surroundings, app: Callable[[str], str]) -> None:
    error = _failure(surroundings.job(app('job.source("a", "key STRING NOT NULL")'), sources={"a": 1}))
    assert isinstance(error, BadDeclaration)
    assert (error.path, error.need) == ('job.source("a")', "the event-time field, at")


def test_an_app_that_raises_is_reported_with_its_exception(surroundings: Surroundings, app: Callable[[str], str]) -> None:
    name = app('raise KeyError("limits")')
    error = _failure(surroundings.job(name, sources={"a": 1}))
    assert isinstance(error, AppFailed)
    assert (error.code, error.exit_code, error.path, error.given) == ("JOB-003", 5, name, "KeyError: 'limits'")
    assert str(error.at).endswith(f"/{name}.py:2")
    assert error.need == "a build(job) that returns"


def test_an_app_that_uses_a_missing_column_is_reported(surroundings: Surroundings, app: Callable[[str], str]) -> None:
    error = _failure(surroundings.job(app(f'job.write(job.source("a", {SCHEMA}).select(name="naem"), "out")'), sources={"a": 1}))
    assert isinstance(error, AppFailed)
    assert "naem" in error.given and "\n" not in error.given


@pytest.mark.parametrize(
    ("module", "given", "line"),
    [
        (None, "ModuleNotFoundError: No module named '{name}'", None),
        ("", "AttributeError: module '{name}' has no attribute 'build'", None),
        ("x = 1\nimport no_such_package", "ModuleNotFoundError: No module named 'no_such_package'", 2),
        ("def build(job:", "SyntaxError: '(' was never closed ({name}.py, line 1)", 1),
        ("build = 3", "TypeError: 'int' object is not callable", None),
        ("def build(): pass", "TypeError: build() takes 0 positional arguments but 1 was given", None),
    ],
    ids=[
        "not there",
        "without build",
        "with an import that is not there",
        "that is no Python",
        "build is no function",
        "build takes nothing",
    ],
)
def test_a_module_that_is_not_an_app_is_reported(
    surroundings: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, given: str, line: int | None
) -> None:
    name = f"app_{uuid.uuid4().hex}"
    monkeypatch.syspath_prepend(str(tmp_path))
    if module is not None:
        (tmp_path / f"{name}.py").write_text(module, encoding="utf-8")
    error = _failure(surroundings.job(name, sources={"a": 1}))
    assert isinstance(error, AppFailed)
    assert (error.path, error.given) == (name, given.format(name=name))
    if line is None:
        # A module without `build` has a file, and no line of it is wrong.
        assert (str(error.at).endswith(f"/{name}.py"), error.need) == (module is not None, "a module with a function build(job)")
    else:
        assert str(error.at).endswith(f"/{name}.py:{line}")
        assert error.need == "a module that can be imported"


@pytest.mark.parametrize("function", ["udf", "pandas_udf"])
def test_a_function_of_the_app_that_raises_in_a_task_is_reported_with_its_place(
    surroundings: Surroundings, app: Callable[[str], str], function: str
) -> None:
    body = f"""
from pyspark.sql.functions import {function}
def inverse(amount):
    return amount / 1 + 1 // 0
name = {function}(inverse, "double")("amount")
job.write(job.source("a", "key STRING NOT NULL, at STRING, name STRING, amount DOUBLE").select(name=name), "out")
job.side_output("errors")"""
    name = app(body.strip())
    job = surroundings.job(name, sources={"a": 1})
    job.feed("a", {"key": "k", "at": "2025-04-05T12:30:00Z", "name": "n", "amount": 1.5})
    with pytest.raises(PenstockError) as raised, job.running() as running:
        running.until_read({"a": [1]})
    error = raised.value
    assert (error.code, error.given) == ("JOB-005", "ZeroDivisionError: integer division or modulo by zero")
    # Of the module: one line for `build`, one for the import, one for the function.
    assert str(error.at).endswith(f"/{name}.py:4")


def test_a_missing_topic_is_reported_with_the_closest_name(surroundings: Surroundings) -> None:
    job = surroundings.job(COPY_ROWS, sources={"a": 1})
    wrong = job.topics["a"] + "s"
    error = _failure(job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(topic=wrong)))
    assert isinstance(error, TopicNotFound)
    assert (error.code, error.path, error.fix) == ("JOB-002", f"topic {wrong}", f"did you mean {job.topics['a']}?")
    assert job.topics["a"] in error.need


def test_all_missing_topics_are_reported_at_once(surroundings: Surroundings) -> None:
    def wrong(spec: dict[str, Any]) -> None:
        for name, source in spec["sources"].items():
            source["kafka"]["topic"] = f"zzzz.{name}.nothing-like-it"

    error = _failure(surroundings.job("tests.jobs.spark.apps.pairs", sources={"a": 1, "b": 1}).edit(wrong))
    assert [(fault.code, fault.path) for fault in error.errors] == [("JOB-002", f"topic zzzz.{name}.nothing-like-it") for name in "ab"]
    assert {fault.fix for fault in error.errors} == {"create the topic, or correct its name in the spec"}


def test_brokers_that_do_not_respond_are_reported(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "TIMEOUT_S", 1.0)
    address = f"127.0.0.1:{_closed_port()}"
    job = surroundings.job(COPY_ROWS, sources={"a": 1})
    error = _failure(replace(job, around=replace(surroundings, brokers=address)))
    assert isinstance(error, BrokersUnreachable)
    assert (error.code, error.path, error.given) == ("JOB-001", "brokers", address)
    assert error.need.startswith("a response within 1 s; client error: ")


def test_a_missing_checkpoint_bucket_is_reported_before_the_query_starts(surroundings: Surroundings) -> None:
    error = _failure(replace(surroundings.job(COPY_ROWS, sources={"a": 1}), checkpoints="no-such-bucket"))
    assert isinstance(error, BucketUnreachable)
    assert (error.code, error.path.startswith("s3a://no-such-bucket/")) == ("JOB-009", True)
    assert "NoSuchBucket" in error.given


def test_a_missing_output_bucket_is_reported_when_the_first_file_is_written(surroundings: Surroundings) -> None:
    job = replace(surroundings.job(COPY_ROWS, sources={"a": 1}), output="no-such-bucket")
    job.feed("a", {"key": "k", "at": "2025-04-05T12:00:00Z"})
    with pytest.raises(BucketUnreachable) as raised, job.running() as running:
        running.until_read({"a": [1]})
    error = raised.value
    assert (error.code, error.path) == ("JOB-009", f"s3a://no-such-bucket/{job.name}")
    assert "NoSuchBucket" in error.given


def test_an_s3_that_does_not_respond_is_reported(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{_closed_port()}")
    monkeypatch.setattr(s3_client, "_ATTEMPTS", 1)
    error = _failure(surroundings.job(COPY_ROWS, sources={"a": 1}))
    assert isinstance(error, BucketUnreachable)
    assert "Could not connect to the endpoint URL" in error.given


def test_the_drivers_process_reports_its_error_as_json_and_ends_with_its_exit_code(surroundings: Surroundings) -> None:
    job = surroundings.job(COPY_ROWS, sources={"a": 1}).edit(lambda spec: spec["sources"]["a"]["kafka"].update(topic="no-such-topic"))
    code, events, log = _driver(job)
    assert code == 5
    # Before Spark is started: a response that never arrives must not cost ten more seconds.
    assert [event["event"] for event in events] == ["starting", "generation", "failed"]
    ((fault,),) = [event["errors"] for event in events if "errors" in event]
    assert (fault["code"], fault["path"]) == ("JOB-002", "topic no-such-topic")
    assert "TopicNotFound" in log, "the log keeps the whole story"


def test_an_invalid_spec_ends_the_drivers_process_with_the_errors_of_the_document(surroundings: Surroundings) -> None:
    job = surroundings.job(COPY_ROWS, sources={"a": 1}).edit(lambda spec: spec.update(parallelism=0, colour="blue"))
    code, events, _ = _driver(job)
    assert code == 2
    (failed,) = events
    assert {fault["code"] for fault in failed["errors"]} == {"SPEC-004", "SPEC-006"}
    assert all(fault["line"] for fault in failed["errors"])


def _driver(job: TestedJob) -> tuple[int, list[dict[str, Any]], str]:
    """Runs the driver's process to its end; returns its exit code, events and log."""
    configuration = RuntimeConfiguration(
        spec=str(job.spec),
        master="local[1]",
        brokers=job.around.brokers,
        job_folder=f"s3a://{CHECKPOINTS}/{job.name}",
        output_bucket=OUTPUT,
    )
    file = job.around.folder / "runtime.json"
    configuration.write(file)
    command = [sys.executable, "-m", "penstock.jobs.driver.runtime", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr


def _closed_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
