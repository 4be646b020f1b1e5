"""All stacks of the shipped environments, as cdktf synthesizes them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.app import AWS, CHARTS, stack_names
from penstock.infra.constructs.provider import SERVICES
from penstock.infra.environment_file import FOLDER, load
from penstock.infra.image_lock import SHIPPED as SHIPPED_IMAGES
from penstock.infra.image_lock import digest_of
from penstock.infra.image_lock import read as read_images
from penstock.infra.provider_lock import FILE, SHIPPED, read
from penstock.scripts.layout import ROOT
from tests.infra.environments import BARE, written

SNAPSHOTS = Path(__file__).parent / "snapshots"
Stacks = dict[str, dict[str, Any]]
# Environment -> the folder that it was synthesized to.
_FOLDERS: dict[str, Path] = {}
Synthesize = Callable[[str], Stacks]

# The service of each kind of resource, by the longest matching prefix of its type.
_SERVICE_OF = {
    "aws_appautoscaling": "appautoscaling",
    "aws_budgets": "budgets",
    "aws_cloudwatch_event": "events",
    "aws_cloudwatch_log": "logs",
    "aws_cloudwatch_metric": "cloudwatch",
    "aws_ecr": "ecr",
    "aws_eks": "eks",
    "aws_iam": "iam",
    "aws_kms": "kms",
    "aws_msk": "kafka",
    "aws_opensearch": "opensearch",
    "aws_prometheus": "amp",
    "aws_s3": "s3",
    "aws_sns": "sns",
    "aws_sqs": "sqs",
}


def ran_synth(environment: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the cdktf app for an environment, with a folder for its output."""
    variables = {**os.environ, "PENSTOCK_ENVIRONMENT": environment, "CDKTF_OUTDIR": str(folder), "PYTHONPATH": str(ROOT)}
    variables["PENSTOCK_TERRAFORM_STATE"] = str(folder / "state")
    variables.pop("PENSTOCK_STACKS", None)
    return subprocess.run([sys.executable, "-m", "penstock.infra"], env=variables, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Synthesizes an environment, once."""
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")

    @cache
    def once(environment: str) -> Stacks:
        folder = tmp_path_factory.mktemp("synth")
        ran = ran_synth(environment, folder)
        assert ran.returncode == 0, ran.stderr
        _FOLDERS[environment] = folder
        return {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("stacks/*/cdk.tf.json"))}

    return once


def _addresses(stack: dict[str, Any]) -> list[str]:
    return sorted(f"{kind}.{name}" for kind, named in stack.get("resource", {}).items() for name in named)


def resource_paths(stack: dict[str, Any]) -> dict[str, str]:
    """Address -> construct path."""
    return {
        f"{kind}.{name}": resource["//"]["metadata"]["path"]
        for kind, named in sorted(stack.get("resource", {}).items())
        for name, resource in sorted(named.items())
    }


@pytest.mark.parametrize("environment", ["local", "dev", "production"])
def test_an_address_is_a_contract_with_what_is_deployed(synthesize: Synthesize, environment: str) -> None:
    """A renamed construct is a resource that is destroyed and created again.

    Update the snapshots with PENSTOCK_WRITE_SNAPSHOTS=1, and describe in the changelog what a user has to move.
    """
    paths_by_stack = {name: resource_paths(stack) for name, stack in synthesize(environment).items()}
    file = SNAPSHOTS / f"{environment}.json"
    if os.environ.get("PENSTOCK_WRITE_SNAPSHOTS") == "1":
        file.write_text(json.dumps(paths_by_stack, indent=1) + "\n", encoding="utf-8")
    assert paths_by_stack == json.loads(file.read_text(encoding="utf-8"))


def test_an_environment_on_aws_has_all_the_stacks(synthesize: Synthesize) -> None:
    for environment in ("dev", "production"):
        assert set(synthesize(environment)) == {*AWS, *CHARTS} == set(stack_names(load(environment)))


def test_an_emulated_cluster_gets_no_charts(synthesize: Synthesize) -> None:
    assert set(synthesize("local")) == set(AWS) == set(stack_names(load("local")))


def test_an_environment_without_a_cluster_has_its_buckets(synthesize: Synthesize) -> None:
    assert set(synthesize(BARE)) == {"checkpoints"}


def test_a_stack_has_one_side(synthesize: Synthesize) -> None:
    for name, stack in synthesize("production").items():
        assert list(stack["provider"]) == ["helm" if name in CHARTS else "aws"]
        kinds = {kind.split("_")[0] for kind in stack["resource"]}
        assert kinds == {"helm" if name in CHARTS else "aws"}


def test_each_stack_may_be_applied_with_the_locked_packages_of_its_provider_alone(synthesize: Synthesize) -> None:
    for name, stack in synthesize("dev").items():
        (required,) = stack["terraform"]["required_providers"].values()
        locked = read(_FOLDERS["dev"] / "stacks" / name / FILE)
        address = f"registry.terraform.io/hashicorp/{required['source']}"
        assert set(locked) == {address}
        assert locked[address].version == read(SHIPPED)[address].version == required["version"]


def test_no_stack_asks_anything_of_aws_before_it_is_applied(synthesize: Synthesize) -> None:
    """A data source that needs a call would make an offline plan impossible; the partition is computed, and states are read."""
    for environment in ("local", "production"):
        kinds = {kind for stack in synthesize(environment).values() for kind in stack.get("data", {})}
        assert kinds <= {"aws_partition", "terraform_remote_state"}


BOUNDARY = "arn:aws:iam::123456789012:policy/teams/jobs"


def _roles(stacks: Stacks) -> dict[str, dict[str, Any]]:
    return {
        f"{stack}/{name}": role for stack, content in stacks.items() for name, role in content["resource"].get("aws_iam_role", {}).items()
    }


def test_every_role_has_the_environments_boundary(synthesize: Synthesize, tmp_path: Path) -> None:
    def bounded(spec: dict[str, Any]) -> None:
        spec["permissionsBoundary"] = BOUNDARY

    roles = _roles(synthesize(str(written(tmp_path, bounded))))
    assert len(roles) > 5
    assert {role["permissions_boundary"] for role in roles.values()} == {BOUNDARY}
    assert roles.keys() == _roles(synthesize("production")).keys()
    assert not [role for role in _roles(synthesize("production")).values() if "permissions_boundary" in role]


def test_images_and_charts_of_others_come_from_the_mirrors(synthesize: Synthesize, tmp_path: Path) -> None:
    ecr = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
    mirrors = {"public.ecr.aws": f"{ecr}/ecr-public", "cr.fluentbit.io": f"{ecr}/fluent-bit", "quay.io": f"{ecr}/quay"}

    def mirrored(spec: dict[str, Any]) -> None:
        spec["mirrors"] = mirrors

    stacks = synthesize(str(written(tmp_path, mirrored)))
    text = json.dumps([stacks[name] for name in CHARTS])
    assert not [registry for registry in mirrors if f"{registry}/" in text]
    karpenter = stacks["karpenter-charts"]["resource"]["helm_release"]
    assert {karpenter[name]["repository"] for name in ("karpenter", "karpenter-crd")} == {f"oci://{ecr}/ecr-public/karpenter"}
    (values,) = karpenter["karpenter"]["values"]
    assert json.loads(values)["controller"]["image"] == {
        "repository": f"{ecr}/ecr-public/karpenter/controller",
        "digest": digest_of("public.ecr.aws/karpenter/controller:1.14.1"),
    }
    assert f"{ecr}/quay/prometheus/prometheus:" in text
    assert f"{ecr}/fluent-bit/fluent/fluent-bit:" in text


def _images(value: Any) -> list[str]:
    """The image of each container in a part of a stack's releases."""
    if isinstance(value, dict):
        own = [value["image"]] if isinstance(value.get("image"), str) else []
        return [*own, *(image for part in value.values() for image in _images(part))]
    return [image for part in value for image in _images(part)] if isinstance(value, list) else []


def test_an_image_of_others_without_a_digest_is_one_that_says_why(synthesize: Synthesize) -> None:
    stacks = synthesize("production")
    releases = [release for name in CHARTS for release in stacks[name]["resource"]["helm_release"].values()]
    named = {image for release in releases for values in release.get("values", []) for image in _images(json.loads(values))}
    of_others = {image for image in named if "penstock-production/jobs" not in image and "aws_ecr_repository" not in image}
    assert len(of_others) == 2, of_others
    unpinned = {name for name, one in read_images(SHIPPED_IMAGES).images.items() if one.digest is None}
    assert {image for image in of_others if "@sha256:" not in image} <= unpinned
    (karpenter,) = stacks["karpenter-charts"]["resource"]["helm_release"]["karpenter"]["values"]
    assert json.loads(karpenter)["controller"]["image"]["digest"].startswith("sha256:")


def test_roles_of_pods_are_for_the_environments_own_cluster(synthesize: Synthesize) -> None:
    trusted = [json.loads(role["assume_role_policy"])["Statement"][0] for role in _roles(synthesize("production")).values()]
    of_pods = [one["Condition"] for one in trusted if one["Principal"] == {"Service": "pods.eks.amazonaws.com"}]
    assert len(of_pods) > 5
    account, cluster = load("production").spec.account, "cluster/penstock-production"
    for condition in of_pods:
        assert condition["StringEquals"] == {"aws:SourceAccount": account}
        assert condition["ArnLike"]["aws:SourceArn"].endswith(f":eks:us-east-1:{account}:{cluster}")


def test_every_service_is_asked_at_the_emulator(synthesize: Synthesize) -> None:
    used = set()
    for stack in synthesize("local").values():
        (provider,) = stack["provider"]["aws"]
        (endpoints,) = provider["endpoints"]
        assert set(endpoints) == set(SERVICES)
        assert set(endpoints.values()) == {"http://127.0.0.1:4566"}
        for kind in stack["resource"]:
            known = [service for start, service in _SERVICE_OF.items() if kind.startswith(start)]
            used |= set(known or ["ec2"])
    assert used <= set(SERVICES)


def test_no_stack_holds_credentials_or_a_path_of_this_machine(synthesize: Synthesize) -> None:
    for environment in ("local", "dev", "production"):
        for name, stack in synthesize(environment).items():
            text = json.dumps(stack)
            for provider in stack["provider"].get("aws", []):
                assert not {"access_key", "secret_key", "token", "profile", "shared_credentials_files", "assume_role"} & set(provider)
            assert not re.search(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b", text), name
            assert str(ROOT) not in text, name
            assert str(Path.home()) + "/" not in text, name


def test_every_stack_has_a_state_of_its_own(synthesize: Synthesize) -> None:
    for environment in ("local", "production"):
        backends = [json.dumps(stack["terraform"]["backend"], sort_keys=True) for stack in synthesize(environment).values()]
        assert len(set(backends)) == len(backends)


def test_an_infeasible_job_stops_the_synth_with_sizings_own_error(tmp_path: Path) -> None:
    spec = yaml.safe_load((ROOT / "jobs/specs/user_credit.yaml").read_text(encoding="utf-8"))
    spec["spec"]["executor"]["memory"] = "900g"
    (tmp_path / "huge.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    ran = ran_synth(str(written(tmp_path, lambda made: made.update(jobs=["huge.yaml"]))), tmp_path / "out")
    assert ran.returncode == 3, ran.stderr
    assert "error[SIZ-0" in ran.stderr
    assert "huge.yaml:" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "out").exists()


def test_two_jobs_of_one_name_are_reported(tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text((ROOT / "jobs/specs/user_credit.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    ran = ran_synth(str(written(tmp_path, lambda made: made.update(jobs=["one.yaml", "two.yaml"]))), tmp_path / "out")
    assert ran.returncode == 2
    assert "error[INF-006]" in ran.stderr
    assert "two.yaml:" in ran.stderr


def test_a_missing_job_spec_is_reported(tmp_path: Path) -> None:
    ran = ran_synth(str(written(tmp_path, lambda made: made.update(jobs=["none.yaml"]))), tmp_path / "out")
    assert ran.returncode == 2
    assert "none.yaml" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("environment", sorted(file.stem for file in FOLDER.glob("*.yaml")))
def test_the_shipped_environments_run_the_jobs_of_the_quick_start(environment: str) -> None:
    # The other shipped specs are examples: their topics and connections are for a team to define.
    assert {path.name for path in load(environment).spec.job_paths} == {"user_credit.yaml", "flights.yaml"}
