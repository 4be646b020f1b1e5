"""``penstock lint``, as it is called."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.infra.environment_file import FOLDER, names
from penstock.scripts.cli.command import main
from penstock.sizing.lint.lint import RULES
from tests.infra.environments import BARE
from tests.scripts.cli.called import Called, penstock

ROOT = Path(__file__).resolve().parents[3]
TODAY = ("--today", "2026-11-21")
SPECS = sorted(str(path) for path in (ROOT / "jobs/specs").glob("*.yaml"))
HEAVY = ("pyspark", "py4j", "cdktf", "constructs", "jsii", "boto3", "botocore", "moto", "pandas", "numpy", "confluent_kafka")
JOBS = "".join(["  jobs:\n", *(f"    - {ROOT}/jobs/specs/{name}.yaml\n" for name in ("user_credit", "flights"))])
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 6
  executor: {slots: 3, memory: 8g}
  driver: {memory: 2g}
  sources:
    a:
      kafka: {topic: clicks, partitions: 6, maxOffsetsPerTrigger: 1000}
      time: {field: at, outOfOrderness: 10s, idleness: 1m}
  sparkConf:
    spark.decommission.enabled: true
"""
MANIFESTS = """\
# The pool of the executors.
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spark}
spec:
  limits: {cpu: "100"}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m, budgets: [{nodes: "1"}]}
  template:
    metadata: {labels: {NodeGroupType: SparkDriver}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [m]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: v1
kind: Pod
metadata: {name: driver, labels: {spark-role: driver}}
spec:
  nodeSelector: {NodeGroupType: SparkDriver}
  containers: [{name: c, image: x}]
---
"""


def run(*words: str, cwd: Path = ROOT) -> Called:
    return penstock("lint", *words, cwd=cwd)


def as_json(*words: str) -> dict[str, Any]:
    """What the command prints as JSON, in this process: a process of its own for each finding would take a minute."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(["lint", *words, *TODAY, "-o", "json"])
    document: dict[str, Any] = json.loads(printed.getvalue())
    assert "counts" in document, document
    assert code == (1 if document["counts"]["error"] else 0)
    return document


def found(*words: str) -> list[tuple[str, int | None]]:
    return [(finding["rule"], finding["line"]) for finding in as_json(*words)["findings"]]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "app.py").touch()
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "m.yaml"
    path.write_text(MANIFESTS)
    return path


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text((FOLDER / "production.yaml").read_text().replace("../../jobs", str(ROOT / "jobs")))
    return path


def replaced(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return str(path)


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("environment", names())
def test_what_is_shipped_has_no_error(environment: str) -> None:
    document = as_json(*SPECS, "--environment", environment)
    assert document["counts"]["error"] == 0, document["findings"]
    assert document["schemaVersion"] == 1


def test_a_clean_job_has_no_findings_and_the_table_says_so(spec: Path) -> None:
    done = run(str(spec), *TODAY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no findings in 1 spec, environment production\n", "")


def test_many_documents_are_counted_at_the_end_not_listed(spec: Path, manifest: Path) -> None:
    other = spec.with_name("visits.yaml")
    other.write_text(spec.read_text().replace("clicks", "visits"))
    done = run(str(spec), str(other), "--manifest", str(manifest), *TODAY)
    assert done.stdout.splitlines()[-1].endswith(" in 2 specs, environment production, 1 manifest file")


def test_findings_stand_by_file_with_line_reason_and_fix(spec: Path) -> None:
    replaced(spec, "spark.decommission.enabled", "spark.executor.decommission.enabled")
    done = run(str(spec), *TODAY, "--ignore", "LINT-036")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        f"{spec}\n"
        "   14  error[LINT-030]: unknown Spark 4.3.0 setting\n"
        "       at    spec.sparkConf.spark.executor.decommission.enabled\n"
        "       is    true\n"
        "       need  a setting of Spark 4.3.0\n"
        "       why   Spark silently ignores unknown settings: the intended effect does not happen\n"
        "       fix   did you mean spark.decommission.enabled?\n"
        "\n"
        "1 error in 1 spec, environment production\n"
    )


def test_no_line_is_wider_than_a_hundred_columns(spec: Path) -> None:
    replaced(spec, "idleness: 1m", "idleness: 2m")
    replaced(spec, "partitions: 6", "partitions: 2")
    assert max(map(len, run("--rules").stdout.splitlines())) <= 100
    assert max(len(line) for line in run(str(spec), *TODAY).stdout.splitlines() if str(spec) not in line) <= 100


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("partitions: 6", "partitions: 4", "LINT-050", 11),
        (", idleness: 1m", "", "LINT-053", 12),
        ("memory: 8g", "memory: 500m", "LINT-056", 7),
        ("slots: 3, memory: 8g", "slots: 13, cores: 1, memory: 2g", "LINT-065", 7),
        ("slots: 3, memory: 8g", "slots: 13, cores: 1, memory: 2g", "LINT-066", 7),
        ("outOfOrderness: 10s, ", "", "LINT-067", 12),
        ("memory: 8g", "heap: 40g", "LINT-068", 7),
        ("spark.decommission.enabled: true", "spark.sql.shuffle.partitions: 200", "LINT-055", 14),
        ("spark.decommission.enabled: true", "spark.sql.streaming.checkpointLocation: /tmp/x", "LINT-038", 14),
        ("spark.decommission.enabled: true", "spark.kubernetes.executor.node.selector.pool: fast", "LINT-001", 14),
        ("spark.decommission.enabled: true", "spark.kubernetes.driver.node.selector.penstock.dev/role: executor", "LINT-002", 14),
        ("spark.decommission.enabled: true", "spark.sql.adaptive.enabled: yess", "LINT-033", 14),
    ],
)
def test_faults_of_a_spec_are_found_on_their_line(spec: Path, old: str, new: str, rule: str, line: int) -> None:
    assert (rule, line) not in found(str(spec))
    assert (rule, line) in found(replaced(spec, old, new))


@pytest.mark.parametrize(
    ("old", "new", "rule", "near"),
    [
        ('version: "1.35"', 'version: "1.34"', "LINT-061", "version:"),
        ('version: "1.35"', 'version: "1.33"', "LINT-060", "version:"),
        ("karpenterVersion: 1.14.1", "karpenterVersion: 1.8.0", "LINT-063", "karpenterVersion"),
        ("values: [on-demand]}", "values: [spot, on-demand]}", "LINT-020", "nodeSelector: {penstock.dev/role: driver}"),
        ("values: [m, r]}", "values: [mm]}", "LINT-006", "values: [mm]"),
        # Without jobs nothing gives the pools limits.
        (JOBS, "", "LINT-010", "name: drivers"),
        ("nodeSelector: {penstock.dev/role: driver}", "nodeSelector: {penstock.dev/role: drivers}", "LINT-001", "role: drivers}"),
        ("operator: Equal, value: driver", "operator: Equal, value: drive", "LINT-002", "value: drive,"),
        ("expireAfter: 720h", "expireAfter: 2h", "LINT-014", "expireAfter: 2h"),
    ],
)
def test_faults_of_an_environment_are_found_on_their_line(environment: Path, old: str, new: str, rule: str, near: str) -> None:
    assert found("--environment", str(environment)) == []
    replaced(environment, old, new)
    lines = [line for one, line in found("--environment", str(environment)) if one == rule]
    # A toleration stands in a list below its key.
    assert lines and 0 <= line_of(environment, near) - (lines[0] or 0) <= 1


def test_an_environment_is_named_as_a_person_here_would_name_it(spec: Path) -> None:
    done = run("--environment", "production", "--today", "2027-03-01")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "infra/environments/production.yaml")


def test_an_environment_without_a_cluster_says_nothing_of_nodes(spec: Path) -> None:
    assert found(replaced(spec, "spark.decommission.enabled: true", "spark.ui.enabled: true"), "--environment", BARE) == []


def test_warnings_count_where_strict_is_asked_for(spec: Path) -> None:
    path = replaced(spec, ", idleness: 1m", "")
    assert (run(path, *TODAY).returncode, run(path, *TODAY, "--strict").returncode) == (0, 1)
    assert run(path, *TODAY, "--strict", "--ignore", "LINT-053").returncode == 0


def test_clean_manifests_have_no_findings(manifest: Path) -> None:
    assert found("--manifest", str(manifest)) == []


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("nodeSelector: {NodeGroupType: SparkDriver}", "nodeSelector: {NodeGroupType: SparkComputeOptimized}", "LINT-001", 21),
        ("values: [m]}", "values: [mz]}", "LINT-006", 13),
        ("values: [on-demand]}", "values: [spot]}", "LINT-020", 21),
        ("values: [amd64]}", "values: [arm65]}", "LINT-005", 14),
        ("  limits:", "  ttlSecondsAfterEmpty: 30\n  limits:", "LINT-015", 6),
        ("consolidateAfter: 5m,", "consolidateAfter: 5m, expireAfter: 720h,", "LINT-015", 7),
        ("key: kubernetes.io/arch", "key: karpenter.sh/arch", "LINT-016", 14),
        ("apiVersion: karpenter.sh/v1", "apiVersion: karpenter.sh/v1beta1", "LINT-017", 2),
        ("nodeSelector: {NodeGroupType: SparkDriver}", "nodeSelector: {NodeGroupType: yes}", "LINT-016", 21),
    ],
)
def test_faults_of_manifests_are_found_on_their_line_in_the_file(manifest: Path, old: str, new: str, rule: str, line: int) -> None:
    assert (rule, line) in found("--manifest", replaced(manifest, old, new))


def test_pods_of_manifests_without_pools_are_held_against_the_environment(manifest: Path) -> None:
    manifest.write_text(MANIFESTS.split("---\n")[1])
    assert found("--manifest", str(manifest)) == []
    assert found("--manifest", str(manifest), "--environment", "production") == [("LINT-001", 5)]


KUBEFLOW = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: taxi}
spec:
  sparkVersion: "4.3.0"
  sparkConf: {spark.dynamic.allocation: "true"}
  driver: {nodeSelector: {NodeGroupType: SparkDriver}, annotations: {karpenter.sh/do-not-disrupt: "true"}}
  executor: {nodeSelector: {NodeGroupType: SparkExecutor}}
"""
APACHE = """\
apiVersion: spark.apache.org/v1
kind: SparkApplication
metadata: {name: taxi}
spec:
  sparkConf:
    spark.executor.decommission.enabled: "true"
    spark.kubernetes.driver.node.selector.NodeGroupType: SparkDriver
  driverSpec: {podTemplateSpec: {spec: {tolerations: [{operator: Exists}]}}}
  executorSpec:
    podTemplateSpec:
      spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
        {matchExpressions: [{key: NodeGroupType, operator: In, values: [SparkExecutor]}]}]}}}}
"""


@pytest.mark.parametrize(
    ("application", "lines"), [(KUBEFLOW, {("LINT-030", 6), ("LINT-001", 8)}), (APACHE, {("LINT-030", 6), ("LINT-001", 11)})]
)
def test_a_spark_application_of_either_operator_is_read(
    manifest: Path, tmp_path: Path, application: str, lines: set[tuple[str, int]]
) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(application)
    assert set(found("--manifest", str(manifest), str(path))) == lines


def test_settings_of_an_older_spark_are_not_held_against_this_one(manifest: Path, tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(KUBEFLOW.replace("4.3.0", "3.5.1"))
    assert ("LINT-030", 6) not in found("--manifest", str(manifest), str(path))


def test_a_node_class_is_read(tmp_path: Path) -> None:
    path = tmp_path / "class.yaml"
    spec = "{amiSelectorTerms: [{alias: al2023@latest}],\n  metadataOptions: {httpTokens: optional}}"
    path.write_text(f"apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec: {spec}\n")
    assert found("--manifest", str(path)) == [("LINT-018", 4), ("LINT-019", 5)]


def test_a_disruption_budget_of_another_file_protects_the_driver(manifest: Path, tmp_path: Path) -> None:
    replaced(manifest, "consolidationPolicy: WhenEmpty", "consolidationPolicy: WhenEmptyOrUnderutilized")
    assert found("--manifest", str(manifest)) == [("LINT-021", 17)]
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"spark-role": "driver"}}}}
    path = tmp_path / "budget.yaml"
    path.write_text(yaml.safe_dump(budget))
    assert found("--manifest", str(manifest), str(path)) == []


def test_other_kinds_lists_and_empty_documents_are_read(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    pool = yaml.safe_load(MANIFESTS.split("---")[0])
    pool["spec"]["template"]["spec"]["requirements"][0]["values"] = ["mz"]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    path.write_text("---\n# nothing\n---\n" + yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [config, pool]}) + "---\n")
    document = as_json("--manifest", str(path))
    assert ("LINT-006", "items[1].spec.template.spec.requirements[0]") in [(one["rule"], one["path"]) for one in document["findings"]]


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "{{ .Values.x }}\n",
        "kind: NodePool\n",
        "kind: NodePool\nspec: 5\n",
        "kind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: []}}\n",
        "kind: NodePool\nmetadata: {name: a}\nspec: {template: {metadata: 3, spec: {requirements: [1, {key: 2}]}}, limits: [1]}\n",
        "kind: EC2NodeClass\nspec: {amiSelectorTerms: [1, {alias: 2}], metadataOptions: 3}\n",
        "kind: Pod\nspec: {nodeSelector: [1], tolerations: {a: b}, affinity: 3}\n",
        "- 1\n",
        "5\n",
        "kind: {a: b}\n",
        "\x00",
        "kind: List\nitems: [1, {}]\n",
        "kind: SparkApplication\nspec: {sparkConf: [1], driver: 3, executor: {tolerations: [1]}}\n",
        "kind: SparkApplication\nspec: {sparkConf: {1: 2, spark.x: [1], spark.y: null}}\n",
        "",
        "# only a comment\n",
        "---\n...\n",
    ],
)
def test_odd_manifests_are_findings_or_errors_and_never_a_traceback(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    done = run("--manifest", str(path), *TODAY)
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stderr


DOCUMENTS = [one for text in (MANIFESTS, KUBEFLOW, APACHE) for one in yaml.safe_load_all(text) if one is not None]
SOME = st.sampled_from([None, 1, -2.5, True, "", "x", [], [1], {}, {"a": "b"}, ["a"], {"key": "team", "operator": "In", "values": ["a"]}])


def changed(document: Any, path: list[int], value: Any) -> Any:
    """The document with something else at one of its places."""
    if not path or not isinstance(document, dict | list) or not document:
        return value
    key = list(document)[path[0] % len(document)] if isinstance(document, dict) else path[0] % len(document)
    inside = changed(document[key], path[1:], value)
    return {**document, key: inside} if isinstance(document, dict) else [*document[:key], inside, *document[key + 1 :]]


ANYTHING_ANYWHERE = given(which=st.integers(0, 3), path=st.lists(st.integers(0, 9), min_size=1, max_size=9), value=SOME)


def linted_with(folder: Path, which: int, path: list[int], value: Any) -> int:
    """The exit code of a lint of the documents with something else at one place of one of them."""
    documents = list(DOCUMENTS)
    documents[which] = changed(documents[which], path, value)
    file = folder / "any.yaml"
    file.write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper))
    with contextlib.redirect_stdout(io.StringIO()):
        return main(["lint", "--manifest", str(file), *TODAY])


# A fixed sample; the tier chaos searches at length.
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@ANYTHING_ANYWHERE
def test_a_manifest_with_anything_anywhere_is_never_a_traceback(tmp_path: Path, which: int, path: list[int], value: Any) -> None:
    assert linted_with(tmp_path, which, path, value) in (0, 1, 2)


def test_all_the_faults_of_all_the_documents_come_at_once(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    replaced(spec, "parallelism: 6", "parallelism: 0")
    done = run(str(spec), "--manifest", str(tmp_path / "broken.yaml"), str(tmp_path / "none.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split("]")[0] for line in done.stderr.splitlines() if line.startswith("error")] == [
        "error[SPEC-002",
        "error[SPEC-001",
        "error[SPEC-006",
    ]


@pytest.mark.parametrize(
    ("words", "code", "fix"),
    [
        (("--ignore", "LINT-99"), "USE-020", "did you mean"),
        (("--today", "2026-02-30"), "USE-021", "use the format"),
        (("--today", "tomorrow"), "USE-021", "use the format"),
        ((), "USE-022", "penstock lint"),
        (("--environment", "prod"), "INF-001", "name one"),
        (("none.yaml",), "SPEC-001", "check the path"),
    ],
)
def test_a_bad_call_is_a_coded_error(words: tuple[str, ...], code: str, fix: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error[{code}]")
    assert f"fix  {fix}" in done.stderr


def test_the_rules_are_a_table_and_json() -> None:
    lines = run("--rules").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("LINT-")] == list(RULES)
    document = json.loads(run("--rules", "-o", "json").stdout)
    assert [rule["id"] for rule in document["rules"]] == list(RULES)
    assert set(document["rules"][0]) == {"id", "severity", "title", "why", "fix"}


def test_today_is_the_clocks_where_none_is_given(spec: Path) -> None:
    done = run(str(spec), "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    assert len(json.loads(done.stdout)["today"]) == 10


def test_yaml_says_the_same_as_json(spec: Path) -> None:
    assert yaml.safe_load(run(str(spec), *TODAY, "-o", "yaml").stdout) == as_json(str(spec))


def test_it_needs_neither_spark_nor_cdktf_nor_aws() -> None:
    code = (
        "import sys\n"
        "from penstock.scripts.cli.command import main\n"
        f"main(['lint', {SPECS[0]!r}, '--today', '2026-11-21'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"
