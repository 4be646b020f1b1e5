"""``penstock cost``, as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.cli.cost import compared
from penstock.scripts.errors import WrongUsage
from tests.infra.environments import BARE
from tests.infra.sessions_of_jobs import file_with
from tests.scripts.cli.called import Called, penstock

ROOT = Path(__file__).resolve().parents[3]
SPEC = "jobs/specs/user_credit.yaml"
HEAVY = ("pyspark", "py4j", "cdktf", "constructs", "jsii", "boto3", "botocore", "moto", "pandas", "numpy", "pyarrow", "confluent_kafka")


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )


def cost(*words: str) -> Called:
    return penstock("cost", *words)


def as_json(*words: str) -> dict[str, Any]:
    done = cost(*words, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture
def doubled(tmp_path: Path) -> str:
    """The shipped job with twice the parallelism, whose app lies where it lay."""
    text = (ROOT / SPEC).read_text("utf-8")
    assert text.count("parallelism: 10") == 1
    path = tmp_path / "doubled.yaml"
    path.write_text(text.replace("parallelism: 10", "parallelism: 20"))
    return str(path)


def test_the_shipped_job_has_a_bill_with_its_nodes_its_cluster_and_its_prices() -> None:
    document = as_json(SPEC)
    assert (document["schemaVersion"], document["name"], document["environment"]) == (1, "user-credit", "production")
    bill = document["bill"]
    assert {"EC2", "EBS", "EKS"} <= set(bill["services"])
    assert bill["total"]["usdPerMonth"]["low"] > 0
    assert all(line["priceDate"] and line["priceSource"] for line in bill["lines"])
    summed = sum(line["usdPerMonth"]["low"] for line in bill["lines"] if line["usdPerMonth"])
    assert bill["total"]["usdPerMonth"]["low"] == pytest.approx(summed)


@pytest.mark.parametrize("output", ["table", "yaml", "markdown"])
def test_it_reads_as_a_table_as_yaml_and_as_markdown(output: str) -> None:
    done = cost(SPEC, "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert "user-credit" in done.stdout and "EC2" in done.stdout


def test_twice_the_parallelism_costs_more_and_the_difference_says_what(doubled: str) -> None:
    difference = as_json(SPEC, doubled, "--app-path", str(ROOT))["difference"]
    assert difference["usdPerMonth"]["low"] > 0 and difference["usdPerMonth"]["high"] > 0
    changed = {change["service"] for change in difference["changes"] if change["kind"] != "same"}
    assert "EC2" in changed and "EKS" not in changed
    back = as_json(doubled, SPEC, "--app-path", str(ROOT))["difference"]
    assert back["usdPerMonth"]["low"] == pytest.approx(-difference["usdPerMonth"]["low"])


def test_a_spec_and_itself_differ_by_nothing() -> None:
    document = as_json(SPEC, SPEC)
    assert {change["kind"] for change in document["difference"]["changes"]} == {"same"}
    assert document["difference"]["usdPerMonth"] == {"low": 0, "high": 0}
    assert document["before"] == document["after"]


def test_one_spec_in_two_environments_is_compared() -> None:
    document = as_json(SPEC, "--environment", "production", "--environment", "production")
    assert document["before"]["environment"] == document["after"]["environment"] == "production"
    assert document["difference"]["usdPerMonth"] == {"low": 0, "high": 0}


def test_a_comment_for_a_pull_request_has_the_difference_in_its_heading(doubled: str) -> None:
    done = cost(SPEC, doubled, "--app-path", str(ROOT), "-o", "markdown")
    assert done.returncode == 0
    assert done.stdout.startswith("## Cost: ")
    assert "<details>" in done.stdout


@pytest.mark.parametrize("output", ["table", "markdown"])
def test_two_versions_of_a_job_are_told_apart_by_their_files(doubled: str, output: str) -> None:
    done = cost(SPEC, doubled, "--app-path", str(ROOT), "-o", output)
    # Markdown escapes the underscores of names.
    text = done.stdout.replace("\\", "")
    before, after = f"user-credit ({SPEC}) in production", f"user-credit ({doubled}) in production"
    assert text.index(before) < text.index(after)
    if output == "table":
        assert text.startswith(f"from  {before}\nto    {after}: +")


def test_the_json_of_a_bill_names_the_file_of_its_spec(doubled: str) -> None:
    document = as_json(SPEC, doubled, "--app-path", str(ROOT))
    assert (document["before"]["spec"], document["after"]["spec"]) == (SPEC, doubled)


def test_which_spec_goes_with_which_environment() -> None:
    a, b = Path("a.yaml"), Path("b.yaml")
    assert compared([a], []) == [(a, "production")]
    assert compared([a], ["x"]) == [(a, "x")]
    assert compared([a, b], []) == [(a, "production"), (b, "production")]
    assert compared([a, b], ["x"]) == [(a, "x"), (b, "x")]
    assert compared([a], ["x", "y"]) == [(a, "x"), (a, "y")]
    assert compared([a, b], ["x", "y"]) == [(a, "x"), (b, "y")]


@pytest.mark.parametrize(("specs", "environments"), [(3, 0), (1, 3)])
def test_three_of_a_kind_are_refused(specs: int, environments: int) -> None:
    with pytest.raises(WrongUsage):
        compared([Path("a.yaml")] * specs, ["x"] * environments)


@pytest.mark.parametrize("words", [(), (SPEC, "--environment", "nowhere"), ("missing.yaml",), (SPEC, "-o", "csv")])
def test_a_wrong_call_ends_with_2_and_without_a_traceback(words: tuple[str, ...]) -> None:
    done = cost(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("error[")


def test_an_environment_without_a_cluster_has_nothing_to_price() -> None:
    done = cost(SPEC, "--environment", BARE)
    assert done.returncode == 2
    assert "an environment with a cluster" in done.stderr


def test_it_needs_neither_spark_nor_aws() -> None:
    done = python("-c", f"import sys, penstock.scripts.cli.cost; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert done.stdout == "[]\n"


def test_a_job_of_a_session_is_priced_apart_and_that_is_said(tmp_path: Path) -> None:
    environment = str(file_with(tmp_path, [{"name": "shared", "jobs": ["a", "b"]}]))
    shown = cost(str(tmp_path / "a.yaml"), "--environment", environment)
    assert shown.stdout.startswith("a in production (as if outside of session shared, which penstock size prices), us-east-1: ")
    assert as_json(str(tmp_path / "a.yaml"), "--environment", environment)["session"] == "shared"
    assert "session" not in as_json(str(tmp_path / "c.yaml"), "--environment", environment)
