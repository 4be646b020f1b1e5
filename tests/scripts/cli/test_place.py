"""``penstock place``, as it is called."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.cli import place
from penstock.scripts.planning.scenario_files import read_file
from penstock.sizing.errors import PenstockError
from penstock.sizing.placement.scenario import Scenario
from tests.infra.environments import BARE
from tests.scripts.cli.called import Called, penstock
from tests.sizing.placement.test_decisions import claims, recorded
from tests.sizing.placement.worlds import FAMILY, needs, pods, pool, scenario

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("pyspark", "cdktf", "boto3", "moto", "pandas", "numpy")


def run(*words: str) -> Called:
    return penstock("place", *words)


def written(folder: Path, name: str, document: object) -> str:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return str(path)


@pytest.fixture
def small(tmp_path: Path) -> str:
    return written(
        tmp_path, "small.json", scenario([pool("p", needs(FAMILY, "In", "m6i"))], [pods("g", 2), pods("h", 1, cpu="999")], name="small")
    )


def test_one_file_prints_an_object_of_exactly_the_recorded_form(tmp_path: Path) -> None:
    case = recorded()[0]
    done = run(written(tmp_path, "case.json", case), "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert set(document) == {"node_claims", "unschedulable"}
    assert set(document["node_claims"][0]) == {"node_pool", "pods", "instance_types", "launch"}
    assert set(document["node_claims"][0]["launch"]) == {"capacity_type", "allocation_strategy", "instance_types", "error"}
    assert claims(document) == claims(case["decision"])
    assert document["unschedulable"] == case["decision"]["unschedulable"]


def test_several_files_print_a_list_in_their_order(tmp_path: Path) -> None:
    cases = recorded()[:5]
    files = [written(tmp_path, f"{index}.json", case["scenario"]) for index, case in enumerate(cases)]
    documents = json.loads(run(*files, "-o", "json").stdout)
    assert [claims(document) for document in documents] == [claims(case["decision"]) for case in cases]


def test_the_40_given_decisions_come_out_of_one_call_in_their_order(tmp_path: Path) -> None:
    given = [case for case in recorded() if case["scenario"]["name"].startswith("open")]
    done = run(*(written(tmp_path, f"{index}.json", case) for index, case in enumerate(given)), "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    documents = json.loads(done.stdout)
    assert len(documents) == 40
    assert [claims(document) for document in documents] == [claims(case["decision"]) for case in given]
    assert [document["unschedulable"] for document in documents] == [case["decision"]["unschedulable"] for case in given]


def test_the_table_shows_claims_prices_and_why_pods_stay(small: str) -> None:
    done = run(small)
    assert done.returncode == 0
    assert "small: 1 new node, from 0.1920 USD/h with the cheapest types; 1 pod unschedulable" in done.stdout
    assert "p          2 g" in done.stdout
    assert "m6i.xlarge" in done.stdout
    assert "p: a pod requests 999 CPU, 1,024 MiB; the allowed types have at most" in done.stdout


def test_explain_adds_the_reasons_to_json(small: str) -> None:
    document = json.loads(run(small, "-o", "json", "--explain").stdout)
    assert document["unschedulable"] == {"h": 1}
    assert [(reason["group"], reason["pool"]) for reason in document["reasons"]] == [("h", "p")]


def test_yaml_says_the_same_as_json(small: str) -> None:
    import yaml

    assert yaml.safe_load(run(small, "-o", "yaml").stdout) == json.loads(run(small, "-o", "json").stdout)


def test_arrivals_give_each_claim_its_moment(tmp_path: Path) -> None:
    group = pods("g", 3, cpu="1500m")
    arrivals = [{"at_s": at_s, "group": "g", "count": 1} for at_s in (0, 5, 10)]
    file = written(tmp_path, "staged.json", scenario([pool("p", needs(FAMILY, "In", "m6i"))], [group], arrivals=arrivals))
    document = json.loads(run(file, "-o", "json").stdout)
    assert [claim["at_s"] for claim in document["node_claims"]] == [1, 6, 11]
    assert "6 s" in run(file).stdout


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "USE-010"),
        ("nonsense", "USE-010"),
        ("[" * 100_000, "USE-010"),
        ('{"spotRatio": NaN}', "USE-010"),
        ('{"name": "a", "name": "b"}', "USE-010"),
        ("9" * 5000, "USE-010"),
        ("[]", "SIZ-020"),
        ("null", "SIZ-020"),
        ('{"scenario": 3}', "SIZ-020"),
        ("{}", "SIZ-020"),
    ],
)
def test_a_bad_file_ends_with_2_its_name_and_no_traceback(tmp_path: Path, text: str, code: str) -> None:
    file = written(tmp_path, "bad.json", text)
    done = run(file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error[{code}]")
    assert file in done.stderr
    assert "Traceback" not in done.stderr


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff\xfe\x00")
    done = run(str(path))
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error[USE-010]: cannot read the scenario")


def test_a_missing_file_and_a_folder_are_refused_together(tmp_path: Path) -> None:
    done = run(str(tmp_path / "missing.json"), str(tmp_path), "-o", "json")
    assert done.returncode == 2
    errors = json.loads(done.stdout)["errors"]
    assert [error["code"] for error in errors] == ["USE-010", "USE-010"]


def test_what_is_not_modelled_ends_with_2_and_its_path(tmp_path: Path) -> None:
    static = pods("g", 1, nodeName="node-1")
    done = run(written(tmp_path, "static.json", {"scenario": scenario([pool("p")], [static])}), "-o", "json")
    assert done.returncode == 2
    errors = json.loads(done.stdout)["errors"]
    assert [(error["code"], error["path"]) for error in errors] == [("SIZ-021", "scenario.pods[0].pod.spec.nodeName")]


def test_the_faults_of_all_files_come_at_once(tmp_path: Path, small: str) -> None:
    files = [written(tmp_path, "a.json", "{}"), small, written(tmp_path, "b.json", "[]")]
    errors = json.loads(run(*files, "-o", "json").stdout)["errors"]
    assert {Path(error["file"]).name for error in errors} == {"a.json", "b.json"}


def test_an_unknown_type_of_a_node_names_its_file(tmp_path: Path) -> None:
    node = {"name": "n", "nodePool": "p", "instanceType": "m99.large", "zone": "us-east-1a", "capacityType": "spot"}
    file = written(tmp_path, "node.json", scenario([pool("p")], [pods("g", 1)], existingNodes=[node]))
    errors = json.loads(run(file, "-o", "json").stdout)["errors"]
    assert (errors[0]["code"], errors[0]["file"]) == ("SIZ-024", file)


def test_the_environment_gives_the_nodes(small: str, tmp_path: Path) -> None:
    production = (ROOT / "infra" / "environments" / "production.yaml").read_text(encoding="utf-8")
    crowded = tmp_path / "crowded.yaml"
    crowded.write_text(production.replace("    rootVolume: 50Gi\n", "    rootVolume: 50Gi\n    maxPods: 1\n"), encoding="utf-8")
    claims = json.loads(run(small, "--environment", str(crowded), "-o", "json").stdout)["node_claims"]
    assert [claim["pods"] for claim in claims] == [{"g": 1}, {"g": 1}]


def test_an_environment_without_a_cluster_gives_no_nodes(small: str) -> None:
    done = run(small, "--environment", BARE)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error[USE-001]: invalid usage")


def test_no_file_at_all_is_wrong_usage() -> None:
    done = run()
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error[USE-001]: invalid usage")


def test_the_verb_needs_nothing_heavy(small: str) -> None:
    code = "import sys; from penstock.scripts.cli import command; command.main(sys.argv[1:]); print(*sorted(sys.modules), file=sys.stderr)"
    command = [sys.executable, "-c", code, "place", small, "-o", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert not set(HEAVY) & set(done.stderr.split())


def test_reading_a_file_gives_errors_with_its_name(tmp_path: Path) -> None:
    path = Path(written(tmp_path, "bad.json", "{}"))
    with pytest.raises(PenstockError) as caught:
        read_file(path)
    assert all(error.at is not None and error.at.file == str(path) for error in caught.value.errors)


def _parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    place.add_arguments(parser)
    given: Sequence[str] = words
    return parser.parse_args(given)


def test_a_scenario_of_every_recorded_kind_is_read(tmp_path: Path) -> None:
    for case in recorded():
        document: dict[str, Any] = case["scenario"]
        scenario_of_file = read_file(Path(written(tmp_path, "case.json", document)))
        assert isinstance(scenario_of_file, Scenario)
        assert scenario_of_file.name == document["name"]
