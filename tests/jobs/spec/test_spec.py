"""The job spec."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.targets import targets
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan

SPECS = sorted((Path(__file__).resolve().parents[3] / "jobs/specs").glob("*.yaml"))
SMALL = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 7
  executor: {slots: 13, memory: 16g}
  sources:
    a:
      kafka: {topic: clicks, partitions: 4}
      time: {field: at, outOfOrderness: 10s}
  sinks:
    out: {files: {path: clicks}}
    errors: {kafka: {topic: clicks-errors}}
  sparkConf:
    spark.executor.memoryOverhead: 4g
"""


def load_text(folder: Path, text: str) -> SpecFile:
    path = folder / "spec.yaml"
    path.write_text(text)
    return load(path)


def faults(folder: Path, text: str) -> list[tuple[str, int | None, str]]:
    with pytest.raises(PenstockError) as error:
        load_text(folder, text)
    return [(fault.code, fault.at.line if fault.at else None, fault.path) for fault in error.value.errors]


def changed(old: str, new: str) -> str:
    assert SMALL.count(old) == 1
    return SMALL.replace(old, new)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: str(path.stem))
def test_the_shipped_specs_are_good(path: Path) -> None:
    assert load(path).job.kind == "StreamingJob"


def test_quantities_come_in_the_units_of_their_names(tmp_path: Path) -> None:
    spec = load_text(tmp_path, changed("slots: 13, memory: 16g", "slots: 13, cores: 0.5, memory: 1.5Gi")).job.spec
    assert (spec.executor.memory, spec.executor.cores) == (1536, 500)
    assert spec.sources["a"].time is not None
    assert spec.sources["a"].time.out_of_orderness == 10_000


def test_a_spec_without_sources_is_a_spec(tmp_path: Path) -> None:
    text = SMALL[: SMALL.index("  sources:")]
    assert load_text(tmp_path, text).job.topics() == {}


@pytest.mark.parametrize("bad", ["1Gib", "-1Gi", "nan", "500 Mi", "1.5.0", "16", "1.5g", ".nan", "0m", "[16g]"])
def test_a_wrong_memory_is_an_error_with_its_line(tmp_path: Path, bad: str) -> None:
    assert faults(tmp_path, changed("memory: 16g", f"memory: {bad}")) == [("SPEC-007", 7, "spec.executor.memory")]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("parallelism: 7", "parallelism: 0", ("SPEC-006", 6, "spec.parallelism")),
        ("parallelism: 7", "parallelism: -7", ("SPEC-006", 6, "spec.parallelism")),
        ("parallelism: 7", "parallelism: 7.0", ("SPEC-006", 6, "spec.parallelism")),
        ("parallelism: 7", "parallelism: true", ("SPEC-006", 6, "spec.parallelism")),
        ("parallelism: 7", 'parallelism: "7"', ("SPEC-006", 6, "spec.parallelism")),
        ("  parallelism: 7\n", "", ("SPEC-005", 4, "spec.parallelism")),
        ("parallelism: 7", "paralelism: 7\n  parallelism: 7", ("SPEC-004", 6, "spec.paralelism")),
        ("slots: 13, memory: 16g", "slots: 13", ("SPEC-006", 7, "spec.executor")),
        ("slots: 13, memory: 16g", "memory: 16g, heap: 8g", ("SPEC-006", 7, "spec.executor")),
        ("slots: 13", "spread: {}, slots: 13", ("SPEC-006", 7, "spec.executor.spread")),
        ("slots: 13", "spread: {nodes: always}, slots: 13", ("SPEC-006", 7, "spec.executor.spread.nodes")),
        ("slots: 13", "spread: {racks: required}, slots: 13", ("SPEC-004", 7, "spec.executor.spread.racks")),
        ("topic: clicks,", "topic: no/topic,", ("SPEC-006", 10, "spec.sources.a.kafka.topic")),
        ("name: clicks", "name: Clicks", ("SPEC-006", 3, "metadata.name")),
        ("app: app", "app: app.py/x", ("SPEC-006", 5, "spec.app")),
        ("out: {", "Out Put: {", ("SPEC-006", 13, "spec.sinks.Out Put")),
        ("path: clicks", "path: s3a://bucket/clicks", ("SPEC-006", 13, "spec.sinks.out.files.path")),
        ("path: clicks", "path: ../clicks", ("SPEC-008", 13, "spec.sinks.out.files.path")),
        ("topic: clicks-errors", "topic: clicks", ("SPEC-008", 10, "spec.sources.a.kafka.topic")),
        ("outOfOrderness: 10s", "outOfOrderness: 10", ("SPEC-007", 11, "spec.sources.a.time.outOfOrderness")),
        ("parallelism: 7", "parallelism: 7\n  bounded: true", ("SPEC-008", 7, "spec.bounded")),
        ("parallelism: 7", "parallelism: 7\n  progressTimeout: 9s", ("SPEC-008", 7, "spec.progressTimeout")),
        ("parallelism: 7", "parallelism: 7\n  rewindTo: 2026-11-21T12:00:00", ("SPEC-006", 7, "spec.rewindTo")),
        ("parallelism: 7", "parallelism: 7\n  rewindTo: -1", ("SPEC-006", 7, "spec.rewindTo")),
        ("parallelism: 7", "parallelism: 7\n  rewindTo: true", ("SPEC-006", 7, "spec.rewindTo")),
        ("parallelism: 7", "parallelism: 7\n  trigger: 1s\n  checkpoint: {retention: 28h}", ("SPEC-008", 8, "spec.checkpoint.retention")),
        ("parallelism: 7", 'parallelism: 7\n  bounded: "true"', ("SPEC-006", 7, "spec.bounded")),
        ("penstock/v1", "penstock/v2", ("SPEC-006", 1, "apiVersion")),
        ("memoryOverhead: 4g", "memoryOverhead: [4g]", ("SPEC-006", 16, "spec.sparkConf.spark.executor.memoryOverhead")),
    ],
)
def test_a_fault_has_its_code_its_line_and_its_path(tmp_path: Path, old: str, new: str, fault: tuple[str, int, str]) -> None:
    assert faults(tmp_path, changed(old, new)) == [fault]


@pytest.mark.parametrize("given", ["2023-03-15T18:50:00+05:30", "2023-03-15T13:20:00Z", "2023-03-15 13:20:00.000+00:00", "1678886400000"])
def test_a_rewind_goes_to_a_time_with_any_offset_or_in_epoch_milliseconds(tmp_path: Path, given: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(changed("parallelism: 7", f"parallelism: 7\n  rewindTo: {given}"))
    assert load(path).job.spec.rewind_to == 1_678_886_400_000


SAVEPOINT = "parallelism: 7\n  initialSavepointPath: s3a://bucket/j/savepoints/one"


@pytest.mark.parametrize(
    ("given", "offsets"),
    [
        ("savepointTime", "savepointTime"),
        ("2023-03-15T18:50:00+05:30", 1_678_886_400_000),
        ("1678886400000", 1_678_886_400_000),
        ('{"clicks": {"0": 5, "1": -1}}', {"clicks": {0: 5, 1: -1}}),
        ("{west.clicks: {0: -2}}", {"west.clicks": {0: -2}}),
    ],
)
def test_a_start_from_a_savepoint_reads_on_at_a_time_or_at_offsets(tmp_path: Path, given: str, offsets: object) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(changed("parallelism: 7", f"{SAVEPOINT}\n  initialOffsets: {given}"))
    assert load(path).job.spec.initial_offsets == offsets


@pytest.mark.parametrize(
    "given", ["soon", "2023-03-15T18:50:00", "true", "-1", "[]", "{}", "{clicks: 5}", "{clicks: {a: 5}}", "{clicks: {0: -3}}"]
)
def test_other_places_to_read_on_are_refused(tmp_path: Path, given: str) -> None:
    found = faults(tmp_path, changed("parallelism: 7", f"{SAVEPOINT}\n  initialOffsets: {given}"))
    assert [(code, line, path) for code, line, path in found] == [("SPEC-006", 8, "spec.initialOffsets")]


def test_offsets_are_those_of_a_start_from_a_savepoint_whose_input_does_not_end(tmp_path: Path) -> None:
    alone = changed("parallelism: 7", "parallelism: 7\n  initialOffsets: savepointTime")
    assert faults(tmp_path, alone) == [("SPEC-008", 7, "spec.initialOffsets")]
    ends = f"{SAVEPOINT}\n  initialOffsets: savepointTime\n  trigger: availableNow\n  bounded: true"
    text = changed("parallelism: 7", ends).replace("topic: clicks,", "topic: clicks, startingOffsets: earliest,")
    assert faults(tmp_path, text) == [("SPEC-008", 8, "spec.initialOffsets")]


@pytest.mark.parametrize(
    ("source", "need"),
    [
        ("b: {files: {path: rows, format: text}}", "sources that read topics alone; b does not"),
        ("b: {socket: {connection: lines}}", "sources that read topics alone; b does not"),
    ],
)
def test_what_cannot_be_read_again_from_a_time_cannot_be_rewound(tmp_path: Path, source: str, need: str) -> None:
    spec = changed("parallelism: 7", "parallelism: 7\n  rewindTo: 1678886400000").replace("  sinks:\n", f"    {source}\n  sinks:\n")
    path = tmp_path / "spec.yaml"
    path.write_text(spec)
    with pytest.raises(PenstockError) as raised:
        load(path)
    (fault,) = [error for error in raised.value.errors if error.path == "spec.rewindTo"]
    assert (fault.code, fault.need) == ("SPEC-008", need)


def test_a_retention_needs_an_interval(tmp_path: Path) -> None:
    spec = changed("parallelism: 7", "parallelism: 7\n  trigger: availableNow\n  checkpoint: {retention: 1h}")
    spec = spec.replace("topic: clicks,", "topic: clicks, startingOffsets: earliest,")
    assert faults(tmp_path, spec) == [("SPEC-008", 8, "spec.checkpoint.retention")]


def test_a_bounded_run_reads_what_has_an_end(tmp_path: Path) -> None:
    text = changed("parallelism: 7", "parallelism: 7\n  trigger: availableNow\n  bounded: true")
    kafka = "kafka: {topic: clicks, partitions: 4}"
    assert load_text(tmp_path, text.replace("partitions: 4", "startingOffsets: earliest")).job.spec.bounded
    assert load_text(tmp_path, text.replace(kafka, "files: {path: in, format: json}")).job.spec.bounded
    socket = text.replace(kafka, "socket: {connection: lines}").replace("\n      time: {field: at, outOfOrderness: 10s}", "")
    assert faults(tmp_path, socket) == [("SPEC-008", 12, "spec.sources.a.socket")]


def test_folders_of_two_buckets_are_two_and_of_one_bucket_must_be_separate(tmp_path: Path) -> None:
    out = "out: {files: {path: clicks}}"
    more = out + "\n    more: {files: {path: clicks/more, bucket: lake}}"
    assert load_text(tmp_path, changed(out, more)).job.spec.file_sinks["more"].bucket == "lake"
    same = changed(out, more.replace("path: clicks}", "path: clicks, bucket: lake}"))
    assert faults(tmp_path, same) == [("SPEC-008", 14, "spec.sinks.more.files.path")]
    source = "kafka: {topic: clicks, partitions: 4}"
    reading = changed(out, more).replace(source, "files: {path: clicks, bucket: lake}")
    assert faults(tmp_path, reading) == [("SPEC-008", 10, "spec.sources.a.files.path")]
    assert faults(tmp_path, reading.replace(", bucket: lake}}\n    errors", "}}\n    errors")) == [
        ("SPEC-008", 14, "spec.sinks.more.files.path")
    ]


def test_a_name_that_is_not_allowed_is_shown_itself(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as error:
        load_text(tmp_path, changed("out: {", "Out Put: {"))
    assert error.value.given == '"Out Put"'


def test_two_sinks_of_a_topic_agree_on_its_partitions(tmp_path: Path) -> None:
    more = "errors: {kafka: {topic: clicks-errors}}\n    late: {kafka: {topic: clicks-errors, partitions: 3}}"
    assert faults(tmp_path, changed("errors: {kafka: {topic: clicks-errors}}", more)) == [
        ("SPEC-008", 15, "spec.sinks.late.kafka.partitions")
    ]


def test_all_the_faults_of_a_spec_come_at_once(tmp_path: Path) -> None:
    text = changed("parallelism: 7", "parallelism: 0").replace("memory: 16g", "memory: 1Gib").replace("topic: clicks,", "topc: clicks,")
    assert faults(tmp_path, text) == [
        ("SPEC-006", 6, "spec.parallelism"),
        ("SPEC-007", 7, "spec.executor.memory"),
        ("SPEC-004", 10, "spec.sources.a.kafka.topc"),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the app beside the spec."""
    made = tmp_path_factory.mktemp("spec")
    (made / "app.py").write_text("OPERATORS = 3\n")
    return made


def planned(folder: Path, text: str) -> Plan | PenstockError:
    try:
        return plan(targets(load_text(folder, text)))
    except PenstockError as error:
        assert all(fault.code and fault.at and fault.at.line and fault.fix for fault in error.errors), error.render()
        assert error.render()
        return error


def test_the_small_spec_has_a_plan(folder: Path) -> None:
    assert isinstance(planned(folder, SMALL), Plan)


@settings(max_examples=300)
@given(data=st.data())
def test_a_spec_with_a_slip_is_a_plan_or_a_coded_error_with_a_line(folder: Path, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(SMALL)))
    end = data.draw(st.integers(start, min(len(SMALL), start + 20)))
    written = data.draw(
        st.text(alphabet=st.one_of(st.sampled_from("0:-[]{}&*!,'\" \n\t.#gGiMm"), st.characters(codec="utf-8")), max_size=12)
    )
    planned(folder, SMALL[:start] + written + SMALL[end:])


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["16g", "1Gib", "nan", "10s", "availableNow", "app", "9" * 5000 + "g", "cluster", 0, -1, 10**400]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)
SETTINGS = st.sampled_from(
    [
        "spark.executor.cores",
        "spark.executor.memory",
        "spark.executor.memoryOverhead",
        "spark.executor.memoryOverheadFactor",
        "spark.executor.pyspark.memory",
        "spark.kubernetes.executor.request.cores",
        "spark.kubernetes.executor.limit.cores",
        "spark.kubernetes.driver.limit.cores",
        "spark.driver.memory",
        "spark.task.cpus",
        "spark.memory.offHeap.enabled",
        "spark.memory.offHeap.size",
        "spark.submit.deployMode",
        "spark.sql.shuffle.partitions",
    ]
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))


@settings(max_examples=300)
@given(data=st.data())
def test_a_spec_with_other_values_is_a_plan_or_a_coded_error_with_a_line(folder: Path, data: st.DataObject) -> None:
    spec = copy.deepcopy(yaml.safe_load(SMALL))
    for _ in range(data.draw(st.integers(1, 3))):
        *around, last = data.draw(st.sampled_from(list(paths(spec))))
        place = spec
        for key in around:
            place = place[key]
        if data.draw(st.booleans()):
            place[last] = data.draw(VALUES)
        else:
            place[data.draw(st.one_of(SETTINGS, st.text(max_size=5)))] = data.draw(VALUES)
    planned(folder, yaml.safe_dump(spec))


@settings(max_examples=300)
@given(conf=st.dictionaries(SETTINGS, VALUES | st.sampled_from(["1", "2g", "512m", "0.5", "true", "client", "4500m"]), max_size=5))
def test_any_spark_settings_make_a_plan_or_a_coded_error_with_a_line(folder: Path, conf: dict[str, Any]) -> None:
    spec = yaml.safe_load(SMALL)
    spec["spec"]["sparkConf"] = conf
    planned(folder, yaml.safe_dump(spec))
