"""``penstock size``, as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.sizing.catalog.catalog import shipped
from tests.infra.environments import BARE, pool, written
from tests.infra.sessions_of_jobs import file_with
from tests.scripts.cli.called import Called, penstock

ROOT = Path(__file__).resolve().parents[3]
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


def size(*words: str, cwd: Path = ROOT) -> Called:
    return penstock("size", *words, cwd=cwd)


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
        "subtasks": 50,
    }
    assert document["schemaVersion"] == 1
    assert document["parallelism"] == {"value": 10, "source": "spec"}
    assert document["feasible"] is True
    assert document["kafka"]["topics"] == {
        "events-a": 10,
        "events-b": 10,
        "user-credit-errors": 1,
        "user-credit-late": 1,
        "user-credit-alerts": 1,
    }
    assert "explain" not in document


def test_yaml_says_the_same_as_json() -> None:
    done = size(SPEC, "-o", "yaml")
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout) == as_json(SPEC)


def test_the_table_for_people() -> None:
    done = size(SPEC, "--environment", BARE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "user-credit: 2 executors x 5 slots run 10 tasks at a time\n"
        "\n"
        "  pod       count  memory        heap   overhead      cpu  slots\n"
        "  driver        1   2 GiB   1,280 MiB    768 MiB  2 cores      -\n"
        "  executor      2  16 GiB  11,703 MiB  4,681 MiB  4 cores      5\n"
        "\n"
        "  in total  2 executors, 3 pods with the driver; 32 GiB and 8 cores for the executors\n"
        "  per slot  3,276 MiB and 0.8 cores\n"
        "  in Spark  10 tasks at a time, stage after stage: read events-a 10, read events-b 10, each stage\n"
        "            after a shuffle 10\n"
        "  in Flink  50 subtasks: 5 operators x a parallelism of 10\n"
        "  topics    events-a 10 partitions, events-b 10 partitions, user-credit-errors 1 partition,\n"
        "            user-credit-late 1 partition, user-credit-alerts 1 partition\n"
        "  state     10 stores in rocksdb; 224,640 PUT requests a day for the checkpoint\n"
        "  disk      1,636 MiB for the driver, 5,664 MiB for each executor, 2,098 MiB of it for state,\n"
        "            assumed and not limited\n"
    )


def test_the_table_has_the_nodes_and_the_cost_of_production() -> None:
    done = size(SPEC)
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "nodes 1 on-demand of pool drivers (60 types, the cheapest m6a.xlarge): 1 driver 1 spot of pool executors" in text
    assert "USD a month" in text
    assert "All pods at once: 2 nodes (production, us-east-1, instance types of 2026-07)" in text


def test_a_parallelism_in_the_code_wins_and_both_are_shown(spec: Path) -> None:
    done = size(str(spec))
    assert done.stdout.startswith("clicks: 7 executors x 13 slots run 91 tasks at a time\n")
    assert "in Flink  273 subtasks: 3 operators x a parallelism of 91" in done.stdout
    text = " ".join(done.stdout.split())
    assert f"PARALLELISM = 91 in {spec.parent / 'app.py'}:1 overrides parallelism: 7 in {spec}:6" in text


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


def test_explain_compares_the_executors_with_those_of_other_sizes() -> None:
    found = as_json(SPEC, "--explain")["alternatives"]
    assert [(one["executors"], one["slots"], one["planned"]) for one in found] == [(4, 3, False), (2, 5, True), (1, 10, False)]
    table = size(SPEC, "--explain").stdout.partition("The same tasks with executors of other sizes")[2].splitlines()[3:6]
    assert [line.split("  ")[1] for line in table] == ["4 x 3 slots", "2 x 5 slots", "1 x 10 slots"]
    assert [line.endswith("the plan") for line in table] == [False, True, False]
    assert "alternatives" not in as_json(SPEC)


def test_an_app_may_lie_in_another_folder(spec: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (spec.parent / "app.py").rename(elsewhere / "app.py")
    assert as_json(str(spec))["parallelism"]["source"] == "spec"
    assert as_json(str(spec), "--app-path", str(tmp_path), "--app-path", str(elsewhere))["parallelism"]["value"] == 91


def test_all_the_faults_come_at_once_with_their_lines(spec: Path) -> None:
    spec.write_text(TEXT.replace("parallelism: 7", "parallelism: 0").replace("16g", "1Gib"))
    done = size(str(spec))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error[SPEC-006]: invalid value\n"
        f"  at   {spec}:6  spec.parallelism = 0\n"
        "  need at least 1\n"
        "  fix  use a number in range\n"
        "error[SPEC-007]: invalid quantity\n"
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
    assert done.stdout.startswith("clicks: NOT FEASIBLE: 7 executors x 13 slots")
    assert done.stderr.startswith(f'error[SIZ-004]: heap too small for Spark\n  at   {spec}:7  spec.executor.memory = "512m"\n')
    as_document = size(str(spec), "-o", "json")
    document = json.loads(as_document.stdout)
    assert (as_document.returncode, as_document.stderr) == (3, "")
    assert (document["feasible"], [result["code"] for result in document["violations"]]) == (False, ["SIZ-004"])


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


def test_a_spec_whose_app_is_not_found_is_sized_by_itself_and_says_that_operators_are_unknown(spec: Path) -> None:
    spec.write_text(TEXT.replace("app: app", "app: ap"))
    done = size(str(spec))
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert f"the app ap in {spec}:5 was not found: operators are unknown" in said
    assert "did you mean app?" in said
    explained = json.loads(size(str(spec), "-o", "json", "--explain").stdout)
    assert "unknown, because the app was not found" in json.dumps(explained["explain"])


def test_an_app_that_is_there_and_broken_is_an_error(spec: Path) -> None:
    (spec.parent / "app.py").write_text("def build(:\n")
    done = size(str(spec))
    assert done.returncode == 2
    assert done.stderr.startswith("error[SPEC-012]")


def test_an_app_is_found_in_the_folders_of_the_environment(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "elsewhere.py").write_text("PARALLELISM = 3\n")
    spec.write_text(TEXT.replace("app: app", "app: elsewhere"))
    environment = (ROOT / "infra/environments/local.yaml").read_text()
    (tmp_path / "own.yaml").write_text(environment.replace("\nspec:\n", "\nspec:\n  appPath: [apps]\n"))
    done = size(str(spec), "-e", str(tmp_path / "own.yaml"), "-o", "json")
    assert json.loads(done.stdout)["parallelism"] == {"value": 3, "source": "code"}, done.stdout


def test_it_needs_neither_spark_nor_cdktf_nor_aws() -> None:
    code = (
        "import sys\n"
        "from penstock.scripts.cli.command import main\n"
        f"main(['size', {SPEC!r}, '--explain'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"


def test_sizing_itself_imports_neither_yaml_nor_another_package() -> None:
    code = (
        "import sys\n"
        "import penstock.sizing.plan\n"
        f"print([name for name in {[*HEAVY, 'yaml', 'jobs', 'infra', 'scripts']!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


SEVEN = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: seven}
spec:
  app: app
  parallelism: 91
  executor: {slots: 13, memory: 2048m, cores: 1}
  driver: {memory: 2048m, cores: 1}
"""


@pytest.fixture
def seven(tmp_path: Path) -> Path:
    """Seven executors of 2048m and one core each, which not every cluster carries."""
    (tmp_path / "app.py").touch()
    path = tmp_path / "seven.yaml"
    path.write_text(SEVEN)
    return path


def limited(folder: Path, **limits: str) -> str:
    def change(spec: dict[str, Any]) -> None:
        pool(spec, "executors")["limits"] = limits

    return str(written(folder, change))


def test_a_cluster_that_can_not_carry_seven_executors_is_exit_3_with_what_binds_and_the_nearest(seven: Path, tmp_path: Path) -> None:
    done = size(str(seven), "--environment", limited(tmp_path, cpu="6", memory="12Gi"))
    assert done.returncode == 3
    assert done.stdout.startswith("seven: NOT FEASIBLE")
    stderr = done.stderr
    assert stderr.startswith(f"error[SIZ-010]: NodePool limits exceeded\n  at   {seven}:7  executor = 7 pods of 1 core")
    assert "executors: cpu 6, memory 12Gi" in stderr
    assert "fix  a parallelism of at most " in stderr
    assert "Traceback" not in stderr


def test_with_the_limit_that_is_proposed_it_carries_them(seven: Path, tmp_path: Path) -> None:
    refused = size(str(seven), "-o", "json", "--environment", limited(tmp_path, cpu="6"))
    assert (refused.returncode, refused.stderr) == (3, "")
    (result,) = json.loads(refused.stdout)["violations"]
    cpu = result["fix"].rpartition("limits of executors: cpu ")[2]
    done = size(str(seven), "-o", "json", "--environment", limited(tmp_path, cpu=cpu))
    assert (done.returncode, json.loads(done.stdout)["feasible"]) == (0, True)
    parallelism = result["fix"].removeprefix("a parallelism of at most ").split(" ")[0]
    seven.write_text(SEVEN.replace("parallelism: 91", f"parallelism: {parallelism}"))
    assert size(str(seven), "--environment", limited(tmp_path, cpu="6")).returncode == 0


def test_the_json_has_nodes_cost_state_and_spot_and_with_a_load_throughput() -> None:
    document = as_json(SPEC)
    nodes = document["nodes"]
    assert set(nodes) == {"environment", "region", "catalogDate", "oneBatch", "rootVolume", "staged"}
    for order in (nodes["oneBatch"], nodes["staged"]):
        assert set(order) == {"groups", "nodes", "unschedulable", "reasons"}
        for group in order["groups"]:
            assert {"count", "nodePool", "pods", "capacityType", "launchTypes", "example", "error", "atS"} <= set(group)
    assert {"lines", "services", "total", "assumptions", "hoursPerMonth", "region"} == set(document["cost"])
    assert {"backend", "stores", "stateBytes", "checkpoint"} <= set(document["state"])
    assert set(document["spot"]) == {"nodes", "drain", "losses"}
    assert document["throughput"] is None


def test_a_load_has_throughput_brokers_and_losses(spec: Path) -> None:
    (spec.parent / "app.py").write_text("")
    load = "load: {eventsPerSecond: 20000, eventBytes: 1024, eventsPerSlot: 2000}"
    spec.write_text(TEXT.replace("parallelism: 7", load).replace("slots: 13", "slots: 4"))
    document = as_json(str(spec))
    assert set(document["throughput"]) == {
        *("peakEventsPerS", "targetEventsPerS", "maxOffsetsPerTrigger", "triggerS", "capability"),
        *("basis", "basisText", "profileChanges", "eventsPerSlotPerS"),
    }
    assert document["throughput"]["basisText"] == "no profile: assumed 2,000 events/s a slot"
    assert document["throughput"]["capability"]["capacityEventsPerS"] >= document["throughput"]["targetEventsPerS"]
    assert document["parallelism"]["source"] == "load"
    assert document["kafka"]["load"]["cluster"]["brokers"] >= 3
    assert document["spot"]["losses"]


def test_several_jobs_have_their_plans_and_what_they_take_together(seven: Path) -> None:
    document = as_json(SPEC, str(seven))
    assert set(document) == {"schemaVersion", "jobs", "sessions", "together"}
    assert list(document["jobs"]) == ["user-credit", "seven"]
    assert document["jobs"]["user-credit"] == as_json(SPEC)
    together = document["together"]
    assert set(together) == {"executors", "pods", "partitions", "nodes", "cost", "kafka", "feasible", "violations"}
    assert (together["executors"], together["pods"], together["feasible"]) == (9, 11, True)
    groups = {pods["group"] for group in together["nodes"]["oneBatch"]["groups"] for pods in group["pods"]}
    assert groups == {"user-credit/driver", "user-credit/executor", "seven/driver", "seven/executor"}
    table = size(SPEC, str(seven))
    assert table.returncode == 0
    assert "together in production: 2 jobs, 11 pods on " in table.stdout


def test_several_jobs_of_which_one_is_not_feasible_are_exit_3(seven: Path) -> None:
    seven.write_text(SEVEN.replace("memory: 2048m, cores: 1}\n  driver", "memory: 300g, cores: 1}\n  driver"))
    done = size(SPEC, str(seven))
    assert done.returncode == 3
    assert "error[SIZ-012]" in done.stderr


def test_a_snapshot_with_spot_prices_changes_what_the_bill_rests_on(tmp_path: Path) -> None:
    catalog = shipped()
    spot = {one.name: [{"zone": "us-east-1a", "usd_per_h": 0.01}] for one in catalog.types}
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({**catalog.model_dump(mode="json"), "date": "2026-11-20", "spot": spot}))

    def of_executors(document: dict[str, Any]) -> dict[str, Any]:
        (result,) = [line for line in document["cost"]["lines"] if line["service"] == "EC2" and "spot" in line["item"]]
        return result  # type: ignore[no-any-return]

    assumed, listed = of_executors(as_json(SPEC)), of_executors(as_json(SPEC, "--catalog", str(path)))
    assert (assumed["basis"], listed["basis"]) == ("assumed", "listed")
    assert (listed["usdPerH"]["high"], listed["priceDate"]) == (0.01, "2026-11-20")


def test_a_flink_deployment_becomes_a_spec_that_can_be_sized(tmp_path: Path) -> None:
    out = tmp_path / "moved.yaml"
    done = size("--from-flink", "tests/jobs/flink/seven_task_managers.yaml", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert "7 TaskManagers x 13 slots in Flink" in done.stdout
    assert size("--from-flink", "tests/jobs/flink/seven_task_managers.yaml", "-o", "yaml").stdout == out.read_text()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "USE-001"),
        ((SPEC, "--from-flink", "flink.yaml"), "USE-001"),
        ((SPEC, "--out", "spec.yaml"), "USE-001"),
        ((SPEC, SPEC), "USE-001"),
        ((SPEC, "jobs/specs/flights.yaml", "--environment", BARE), "USE-001"),
        ((SPEC, "--environment", "prod"), "INF-001"),
        ((SPEC, "--catalog", "none.json"), "SPEC-001"),
        ((SPEC, "--nodes", "3"), "USE-001"),
    ],
)
def test_a_wrong_call_is_exit_2_and_names_what_is_needed(words: tuple[str, ...], code: str) -> None:
    done = size(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error[{code}]")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("region", ["us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-south-1", "ap-southeast-1"])
def test_a_region_without_instance_types_has_a_plan_without_nodes(tmp_path: Path, region: str) -> None:
    text = (ROOT / "infra/environments/production.yaml").read_text(encoding="utf-8")
    path = tmp_path / "elsewhere.yaml"
    path.write_text(text.replace("us-east-1", region), encoding="utf-8")
    here, there = as_json(SPEC), as_json(SPEC, "--environment", str(path))
    assert (there["feasible"], there["nodes"], there["cost"], there["spot"]) == (True, None, None, None)
    assert all(there[part] == here[part] for part in ("totals", "pods", "sparkConf", "kafka", "state"))
    (note,) = (note for note in there["notes"] if "instance types" in note)
    assert f"penstock catalog refresh --region {region} --out catalog.{region}.json" in note


def test_jobs_of_a_region_without_instance_types_are_planned_without_their_shared_nodes(tmp_path: Path) -> None:
    text = (ROOT / "infra/environments/production.yaml").read_text(encoding="utf-8")
    path = tmp_path / "elsewhere.yaml"
    path.write_text(text.replace("us-east-1", "eu-west-1"), encoding="utf-8")
    several = (SPEC, "jobs/specs/flights.yaml", "--environment", str(path))
    document = as_json(*several)
    assert (len(document["jobs"]), document["together"]) == (2, None)
    shown = penstock("size", *several, cwd=ROOT)
    assert (shown.returncode, shown.stdout.count("no instance types of eu-west-1")) == (0, 2)


def test_what_needs_instance_types_stops_without_them(tmp_path: Path) -> None:
    text = (ROOT / "infra/environments/production.yaml").read_text(encoding="utf-8")
    path = tmp_path / "elsewhere.yaml"
    path.write_text(text.replace("us-east-1", "eu-west-1"), encoding="utf-8")
    for verb in ("cost", "report"):
        done = penstock(verb, SPEC, "--environment", str(path), cwd=ROOT)
        assert (done.returncode, "error[SIZ-030]" in done.stderr) == (2, True)


def test_a_spread_of_executors_is_in_the_table_and_in_the_document(spec: Path) -> None:
    assert as_json(str(spec))["pods"]["executorSpread"] is None
    spec.write_text(TEXT.replace("memory: 16g", "memory: 16g, spread: {nodes: required}"))
    document = as_json(str(spec))
    assert document["pods"]["executorSpread"] == {"nodes": "required", "zones": None}
    assert document["nodes"]["staged"]["nodes"] == 8
    assert "  spread    executors over nodes (required)\n" in size(str(spec)).stdout


def test_the_read_of_files_is_planned_from_the_spec_or_from_an_option() -> None:
    lines = "jobs/specs/keyword_lines.yaml"
    by_spec = " ".join(size(lines, "-e", BARE).stdout.split())
    assert "lines: 16 files, 2.0 GiB: 16 splits of at most 128.0 MiB, by maxPartitionBytes; 16 tasks, 4 waves over 4 slots" in by_spec
    read = as_json(lines, "-e", BARE, "--files", "lines=3,1g")["files"]["lines"]
    assert (read["files"], read["splits"], read["tasks"], read["waves"]) == (3, 9, 9, 3)
    assert as_json(lines, "-e", BARE, "--files", "3,1g")["files"]["lines"] == read


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jobs/specs/keyword_lines.yaml", "--files", "other=3,1g"), "a source of files: lines"),
        ((SPEC, "--files", "3,1g"), f"{SPEC} has none"),
        ((SPEC, "jobs/specs/keyword_lines.yaml", "--files", "3,1g"), "one SPEC"),
        (("jobs/specs/keyword_lines.yaml", "--files", "3"), "[SOURCE=]FILES,SIZE"),
        (("jobs/specs/keyword_lines.yaml", "--files", "3,1"), "such as lines=16,2Gi"),
    ],
)
def test_files_that_no_source_reads_are_refused(words: tuple[str, ...], said: str) -> None:
    done = size(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_session_of_the_environment_is_shown_beside_its_jobs_and_its_pods_are_placed(tmp_path: Path) -> None:
    file = file_with(tmp_path, [{"name": "shared", "jobs": ["a", "b"]}])
    words = ("--no-check", *(str(tmp_path / f"{job}.yaml") for job in "abc"), "-e", str(file))
    document = as_json(*words)
    (session,) = document["sessions"].values()
    assert session["jobs"] == ["a", "b"] and session["feasible"]
    assert document["together"]["pods"] == session["totals"]["pods"] + document["jobs"]["c"]["totals"]["pods"]
    shown = size(*words)
    assert "session shared: 2 jobs in 1 driver, 2 executors, 8 tasks at a time" in shown.stdout
    # Of one of its jobs alone there is no session.
    assert as_json(*words[:2], *words[3:])["sessions"] == {}
