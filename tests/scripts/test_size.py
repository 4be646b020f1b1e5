"""``penstock size``: the real command, as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SPEC = "jobs/specs/user_credit.yaml"
HEAVY = ("pyspark", "py4j", "cdktf", "constructs", "jsii", "boto3", "botocore", "moto", "pandas", "numpy", "pyarrow", "confluent_kafka")
TEXT = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 7
  executor: {slots: 13, memory: 16g}
  sources:
    a: {kafka: {topic: clicks}}
"""


def size(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts", "size", *words]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, env={"PYTHONPATH": str(ROOT), "PATH": ""}
    )


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text("PARALLELISM = 91\nOPERATORS = 3\n")
    path = tmp_path / "clicks.yaml"
    path.write_text(TEXT)
    return path


def as_json(*words: str) -> dict[str, Any]:
    done = size(*words, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_shipped_job_is_two_executors_and_three_pods() -> None:
    document = as_json(SPEC)
    assert document["totals"] == {
        "executors": 2,
        "pods": 3,
        "executorMemoryMib": 32768,
        "executorCpuMillicores": 8000,
        "subtasks": 40,
    }
    assert document["schemaVersion"] == 1
    assert document["parallelism"] == {"value": 10, "source": "spec"}
    assert document["feasible"] is True
    assert document["kafka"]["topics"] == {"events-a": 10, "events-b": 10, "user-credit-errors": 1, "user-credit-late": 1}
    assert "explain" not in document


def test_yaml_says_the_same_as_json() -> None:
    done = size(SPEC, "-o", "yaml")
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout) == as_json(SPEC)


def test_the_table_for_people() -> None:
    done = size(SPEC, "--environment", "local")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "user-credit: 2 executors x 5 slots run 10 tasks at a time\n"
        "\n"
        "  pod       count  memory        heap   overhead      cpu  slots\n"
        "  driver        1   2 GiB   1,463 MiB    585 MiB  2 cores      -\n"
        "  executor      2  16 GiB  11,703 MiB  4,681 MiB  4 cores      5\n"
        "\n"
        "  in total  2 executors, 3 pods with the driver; 32 GiB and 8 cores for the executors\n"
        "  per slot  3,276 MiB and 0.8 cores\n"
        "  in Spark  10 tasks at a time, stage after stage: read events-a 10, read events-b 10, each stage\n"
        "            after a shuffle 10\n"
        "  in Flink  40 subtasks: 4 operators x a parallelism of 10\n"
        "  topics    events-a 10 partitions, events-b 10 partitions, user-credit-errors 1 partition,\n"
        "            user-credit-late 1 partition\n"
        "  state     10 stores in rocksdb; 224,640 PUT requests a day for the checkpoint\n"
    )


def test_the_table_has_the_nodes_and_the_cost_of_production() -> None:
    done = size(SPEC)
    assert (done.returncode, done.stderr) == (0, "")
    told = " ".join(done.stdout.split())
    assert "nodes 1 on-demand of pool drivers (60 types, the cheapest m6a.xlarge): 1 driver 1 spot of pool executors" in told
    assert "USD a month" in told
    assert "All pods at once: 2 nodes (production, us-east-1, instance types of 2026-07)" in told


def test_a_parallelism_in_the_code_wins_and_both_are_shown(spec: Path) -> None:
    done = size(str(spec))
    assert done.stdout.startswith("clicks: 7 executors x 13 slots run 91 tasks at a time\n")
    assert "in Flink  273 subtasks: 3 operators x a parallelism of 91" in done.stdout
    told = " ".join(done.stdout.split())
    assert f"PARALLELISM = 91 in {spec.parent / 'app.py'}:1 wins over parallelism: 7 in {spec}:6" in told


def test_idle_slots_are_shown(spec: Path) -> None:
    (spec.parent / "app.py").write_text("")
    done = size(str(spec))
    assert done.stdout.startswith("clicks: 1 executor x 13 slots runs 7 tasks at a time\n")
    assert "13 slots, 7 used" in done.stdout


def test_no_line_is_wider_than_a_hundred_columns() -> None:
    for words in ((SPEC,), (SPEC, "--explain"), ("jobs/specs/flights.yaml", "--explain")):
        assert max(map(len, size(*words).stdout.splitlines())) <= 100


def test_explain_says_the_rule_and_the_inputs_of_each_number() -> None:
    done = size(SPEC, "--explain")
    assert "totals.executors = 2\n    max(1, ceil(parallelism / slots))\n    with parallelism 10, slots 5\n" in done.stdout
    explained = {entry["number"]: entry for entry in as_json(SPEC, "--explain")["explain"]}
    assert explained["totals.subtasks"]["inputs"]["operatorsFrom"] == "OPERATORS of the app"


def test_an_app_may_lie_in_another_folder(spec: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (spec.parent / "app.py").rename(elsewhere / "app.py")
    assert size(str(spec)).returncode == 2
    assert as_json(str(spec), "--app-path", str(tmp_path), "--app-path", str(elsewhere))["parallelism"]["value"] == 91


def test_all_the_faults_come_at_once_with_their_lines(spec: Path) -> None:
    spec.write_text(TEXT.replace("parallelism: 7", "parallelism: 0").replace("16g", "1Gib"))
    done = size(str(spec))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error[SPEC-006]: a value that can't be taken\n"
        f"  at   {spec}:6  spec.parallelism = 0\n"
        "  need at least 1\n"
        "  fix  mend the number\n"
        "error[SPEC-007]: not a quantity\n"
        f'  at   {spec}:7  spec.executor.memory = "1Gib"\n'
        "  need an integer with k, m, g or t (with or without b, any case, binary), or a number with Ki, Mi, Gi or Ti\n"
        '  fix  for example "1g"\n'
    )


def test_the_faults_are_json_where_json_is_asked_for(spec: Path) -> None:
    spec.write_text(TEXT.replace("parallelism: 7", "parallelism: 0").replace("app: app", "app: 5"))
    done = size(str(spec), "-o", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (2, "")
    assert [(fault["code"], fault["line"], fault["path"]) for fault in document["errors"]] == [
        ("SPEC-006", 5, "spec.app"),
        ("SPEC-006", 6, "spec.parallelism"),
    ]


def test_a_plan_that_is_not_feasible_is_printed_too(spec: Path) -> None:
    spec.write_text(TEXT.replace("16g", "512m"))
    done = size(str(spec))
    assert done.returncode == 3
    assert done.stdout.startswith("clicks: NOT FEASIBLE; the nearest: 7 executors x 13 slots")
    assert done.stderr.startswith(f'error[SIZ-004]: the heap is too small for Spark\n  at   {spec}:7  spec.executor.memory = "512m"\n')
    as_document = size(str(spec), "-o", "json")
    document = json.loads(as_document.stdout)
    assert (as_document.returncode, as_document.stderr) == (3, "")
    assert (document["feasible"], [found["code"] for found in document["violations"]]) == (False, ["SIZ-004"])


@pytest.mark.parametrize(
    ("name", "code"),
    [("none.yaml", "SPEC-001"), (".", "SPEC-001"), ("empty.yaml", "SPEC-002"), ("latin.yaml", "SPEC-001"), ("twice.yaml", "SPEC-003")],
)
def test_a_file_that_is_no_spec_is_a_coded_error(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "latin.yaml").write_bytes("app: größe\n".encode("latin-1"))
    (tmp_path / "twice.yaml").write_text("app: a\napp: b\n")
    done = size(str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error[{code}]")
    assert "Traceback" not in done.stderr


def test_an_app_that_does_not_exist_names_where_it_was_searched(spec: Path) -> None:
    spec.write_text(TEXT.replace("app: app", "app: ap"))
    done = size(str(spec))
    assert done.returncode == 2
    assert done.stderr.startswith(
        f'error[SPEC-009]: the app does not exist\n  at   {spec}:5  spec.app = "ap"\n  need ap.py or ap/__init__.py in '
    )
    assert done.stderr.endswith("  fix  did you mean app?\n")


def test_it_needs_neither_spark_nor_cdktf_nor_aws() -> None:
    code = (
        "import sys\n"
        "from scripts.command import main\n"
        f"main(['size', {SPEC!r}, '--explain'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"


def test_sizing_itself_imports_neither_yaml_nor_another_package() -> None:
    code = (
        "import sys\n"
        "import sizing.plan\n"
        f"print([name for name in {[*HEAVY, 'yaml', 'jobs', 'infra', 'scripts']!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
