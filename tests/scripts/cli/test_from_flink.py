"""What ``penstock size --from-flink`` prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from penstock.jobs.spec import load
from penstock.scripts.cli.from_flink import run
from penstock.scripts.errors import SpecNotWritten
from penstock.scripts.render.screen import PIPE_WIDTH

ROOT = Path(__file__).resolve().parents[3]
SEVEN = ROOT / "tests/jobs/flink/seven_task_managers.yaml"
SESSION = ROOT / "tests/jobs/flink/session/small_jobs.yaml"
HEAVY = ("pyspark", "py4j", "cdktf", "constructs", "jsii", "boto3", "botocore", "moto", "pandas", "numpy", "pyarrow", "confluent_kafka")
Printed = pytest.CaptureFixture[str]


def test_yaml_is_the_spec_alone_so_that_it_can_be_redirected(capsys: Printed, tmp_path: Path) -> None:
    assert run([SEVEN], "yaml") == 0
    written = tmp_path / "spec.yaml"
    written.write_text(capsys.readouterr().out)
    spec = load(written).job.spec
    assert (spec.parallelism, spec.executor.slots, spec.executor.memory, spec.executor.cores) == (91, 13, 2048, 1000)


def test_a_deployment_is_read_from_a_list_too(capsys: Printed, tmp_path: Path) -> None:
    assert run([SEVEN], "json") == 0
    alone = json.loads(capsys.readouterr().out)
    file = tmp_path / "live.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(SEVEN.read_text("utf-8"))]}))
    assert run([file], "json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [listed[part] for part in ("spec", "comparison")] == [alone[part] for part in ("spec", "comparison")]


def test_the_table_has_both_sides_and_then_the_spec(capsys: Printed) -> None:
    assert run([SEVEN], "table") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    head, _, spec = printed.out.partition("\n# The job spec")
    assert head.startswith("payment-events: 7 TaskManagers x 13 slots in Flink, executors of the same size in Spark\n")
    lines = head.splitlines()
    rows = [line.split("  ") for line in (re.sub(r"  +", "  ", line.strip()) for line in lines)]
    assert ["pods that run tasks", "7", "7", "max(1, ceil(parallelism / slots)) in both"] in rows
    assert ["pod memory", "2,048 MiB", "2,048 MiB"] in [row[:3] for row in rows]
    assert ["JVM heap", "666 MiB", "1,463 MiB"] in [row[:3] for row in rows]
    assert ["metaspace", "256 MiB", "-"] in [row[:3] for row in rows]
    assert max(map(len, lines)) <= PIPE_WIDTH
    assert "executor: {slots: 13, cores: 1, memory: 2048m}" in spec


def test_json_has_the_spec_the_comparison_and_the_notes(capsys: Printed) -> None:
    assert run([SEVEN], "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["schemaVersion", "spec", "comparison", "notes", "feasible", "violations"]
    assert document["schemaVersion"] == 1
    assert document["spec"]["spec"]["executor"] == {"slots": 13, "cores": 1, "memory": "2048m"}
    managed = next(row for row in document["comparison"] if row["name"] == "state store")
    assert (managed["of"], managed["flink"], managed["unit"]) == ("task", 665719939, "bytes")
    assert {"field", "path", "line", "given", "text"} == set(document["notes"][0])


def test_the_spec_can_be_written_to_a_file_too(capsys: Printed, tmp_path: Path) -> None:
    out = tmp_path / "spec.yaml"
    assert run([SEVEN], "json", out) == 0
    assert yaml.safe_load(out.read_text()) == json.loads(capsys.readouterr().out)["spec"]


def test_a_file_that_cannot_be_written_is_a_coded_error(tmp_path: Path) -> None:
    with pytest.raises(SpecNotWritten) as error:
        run([SEVEN], "table", tmp_path / "none" / "spec.yaml")
    assert error.value.path.endswith("spec.yaml")


def test_a_process_that_is_too_small_for_spark_is_printed_with_the_line_of_the_deployment(capsys: Printed, tmp_path: Path) -> None:
    small = tmp_path / "flink.yaml"
    # 700m is enough for a JobManager; a driver of it has a heap below Spark's least.
    small.write_text(SEVEN.read_text().replace('jobManager:\n    resource: {memory: "2048m"', 'jobManager:\n    resource: {memory: "700m"'))
    assert run([small], "table") == 3
    printed = capsys.readouterr()
    assert "driver: {cores: 1, memory: 700m}" in printed.out
    assert printed.err.startswith("error[SIZ-004]: heap too small for Spark\n")
    assert f'{small}:23  spec.jobManager.resource.memory = "700m"' in printed.err
    assert run([small], "json") == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["feasible"], [result["code"] for result in document["violations"]]) == (False, ["SIZ-004"])


def test_a_session_cluster_is_printed_as_one_with_the_specs_of_its_jobs_and_its_part_of_the_environment(capsys: Printed) -> None:
    assert run([SESSION], "table") == 0
    printed = capsys.readouterr()
    head, _, specs = printed.out.partition("\n# The job spec")
    assert head.startswith("session small-jobs: 2 TaskManagers x 4 slots in Flink, executors of the same size in Spark\n")
    rows = [re.sub(r"  +", "  ", line.strip()).split("  ") for line in head.splitlines()]
    assert ["jobs", "2", "2"] in [row[:3] for row in rows]
    assert ["pods that run tasks", "2", "3"] in [row[:3] for row in rows]
    assert ["error-logs: checkpoint", "5 s", "5 s"] in [row[:3] for row in rows]
    *jobs, environment = yaml.safe_load_all(f"#{specs}")
    assert [job["metadata"]["name"] for job in jobs] == ["clicks", "error-logs"]
    assert environment["spec"]["sessions"] == [{"name": "small-jobs", "jobs": ["clicks", "error-logs"]}]
    assert max(map(len, head.splitlines())) <= PIPE_WIDTH


def test_the_files_of_a_session_are_written_to_a_folder_and_are_what_json_has(capsys: Printed, tmp_path: Path) -> None:
    out = tmp_path / "jobs" / "small"
    assert run([SESSION], "json", out) == 0
    document = json.loads(capsys.readouterr().out)
    assert [yaml.safe_load((out / f"{name}.yaml").read_text()) for name in ("clicks", "error-logs")] == document["specs"]
    assert yaml.safe_load((out / "environment.part.yaml").read_text()) == document["environment"]
    assert document["session"]["totals"]["executors"] == 3
    assert list(document["notes"]) == ["clicks", "error-logs"]
    with pytest.raises(SpecNotWritten):
        run([SESSION], "json", out / "clicks.yaml")


def test_a_session_whose_pods_are_too_small_is_printed_and_infeasible(capsys: Printed, tmp_path: Path) -> None:
    small = tmp_path / "flink.yaml"
    small.write_text(SESSION.read_text().replace("memory: 8g", "memory: 1700m"))
    assert run([small], "yaml") == 3
    assert "error[SIZ-004]" in capsys.readouterr().err


def test_it_needs_neither_spark_nor_cdktf_nor_aws() -> None:
    code = (
        "import sys, pathlib\n"
        "from penstock.scripts.cli.from_flink import run\n"
        f"run([pathlib.Path({str(SEVEN)!r})], 'table')\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"
