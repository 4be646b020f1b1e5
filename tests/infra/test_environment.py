from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import FOLDER, argument_of, load, names
from penstock.infra.errors import UnknownEnvironment
from penstock.infra.plans import plans
from penstock.sizing.errors import PenstockError

WHOLE = """\
apiVersion: penstock/v1
kind: Environment
metadata:
  name: staging
spec:
  account: "012345678901"
  region: eu-central-1
  protect: true
  buckets:
    checkpoints: acme-checkpoints
    output: acme-output
  tags:
    cost-centre: "42"
"""


def _faults(tmp_path: Path, text: str) -> list[PenstockError]:
    file = tmp_path / "environment.yaml"
    file.write_text(text)
    with pytest.raises(PenstockError) as raised:
        load(file)
    return list(raised.value.errors)


@pytest.mark.parametrize("arn", ["teams/boundary", "arn:aws:iam::012345678901:role/boundary", "arn:aws:iam::12:policy/boundary"])
def test_a_boundary_is_a_managed_policy(tmp_path: Path, arn: str) -> None:
    (fault,) = _faults(tmp_path, WHOLE + f"  permissionsBoundary: {arn}\n")
    assert (fault.path, fault.given) == ("spec.permissionsBoundary", f'"{arn}"')


def test_the_local_environment_is_shipped() -> None:
    assert names() == ["dev", "local", "production"]
    local = load("local")
    assert local.name == "local"
    assert local.spec.account == "000000000000"
    assert local.spec.buckets.checkpoints == "penstock-local-checkpoints"
    assert local.spec.endpoints is not None


def test_an_environment_is_read_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "staging.yaml"
    file.write_text(WHOLE)
    environment = load(file)
    assert environment.spec.endpoints is None
    assert environment.spec.protect
    assert environment.spec.tags == {"cost-centre": "42"}


def test_a_command_in_a_fix_names_what_finds_the_environments_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name alone may be no name of a file, or that of another one."""
    monkeypatch.chdir(tmp_path)
    Path("my own").mkdir()
    for file in ("other.yaml", "my own/dev.yaml"):
        Path(file).write_text(WHOLE)
    assert argument_of(load("other.yaml")) == "other.yaml"
    assert argument_of(load("my own/dev.yaml")) == "'my own/dev.yaml'"
    assert [argument_of(load(name)) for name in ("dev", "production")] == ["dev", "production"]
    assert argument_of(load("other.yaml").at("http://127.0.0.1:1")) == "other.yaml"
    assert argument_of(load("other.yaml").of_document(None)) == "staging"


def test_a_repositorys_environments_have_names_and_come_before_the_shipped_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cdktf.json").write_text("{}")
    (tmp_path / "environments").mkdir()
    (tmp_path / "jobs").mkdir()
    for name in ("staging", "dev"):
        (tmp_path / "environments" / f"{name}.yaml").write_text(WHOLE.replace("staging", name))
    monkeypatch.chdir(tmp_path / "jobs")
    assert names() == ["dev", "local", "production", "staging"]
    assert load("staging").name == "staging"
    assert load("dev").spec.account == "012345678901"
    # A shipped one that the repository does not have.
    assert load("local").spec.account == "000000000000"
    monkeypatch.chdir(tmp_path.parent)
    assert load("dev").spec.account != "012345678901"


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UnknownEnvironment) as raised:
        load("prod")
    assert raised.value.need == "one of dev, local, production, or the path of an environment file"
    assert raised.value.exit_code == 2


def test_a_missing_path_is_reported() -> None:
    with pytest.raises(PenstockError) as raised:
        load("environments/missing.yaml")
    assert raised.value.code == "SPEC-001"


def test_an_environment_with_an_endpoint_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    emulated = load("local").at("http://127.0.0.1:5000")
    file = tmp_path / "local.yaml"
    file.write_text(emulated.text())
    assert load(file) == emulated
    assert emulated.spec.endpoints is not None
    assert emulated.spec.endpoints.aws == "http://127.0.0.1:5000"


@pytest.mark.parametrize(
    ("old", "new", "line", "need"),
    [
        ('"012345678901"', "012345670000", 6, "12 digits in quotes"),
        ('"012345678901"', '"1234"', 6, "[0-9]{12}"),
        ("eu-central-1", "eu-central", 7, "eu"),
        ("eu-central-1", "Frankfurt", 7, "eu"),
        ("protect: true", 'protect: "yes"', 8, "true or false"),
        ("acme-checkpoints", "ab", 10, "3 to 63 characters; this one has 2"),
        ("acme-checkpoints", "a" * 64, 10, "3 to 63 characters; this one has 64"),
        ("acme-checkpoints", "Acme-Checkpoints", 10, "lower-case"),
        ("acme-checkpoints", "acme.checkpoints", 10, "lower-case letters, digits and hyphens"),
        ("acme-checkpoints", "-acme", 10, "starts and ends"),
        ("acme-checkpoints", "xn--acme", 10, "reserved"),
        ("acme-checkpoints", "acme--ol-s3", 10, "reserved"),
        ("acme-output", "acme-checkpoints", 9, "different buckets"),
        ("cost-centre:", "aws:team:", 12, "does not start with aws:"),
        ('"42"', '"4*2"', 12, "at most 256 letters"),
        ("name: staging", "name: Staging_1", 4, "a-z"),
        ("kind: Environment", "kind: StreamingJob", 2, "Environment"),
    ],
)
def test_an_invalid_value_is_reported_with_its_line_and_what_is_needed(tmp_path: Path, old: str, new: str, line: int, need: str) -> None:
    (fault,) = _faults(tmp_path, WHOLE.replace(old, new))
    assert fault.at is not None
    assert (fault.code, fault.at.line) == ("SPEC-006", line)
    assert need in fault.need
    assert fault.fix


def test_unknown_and_missing_fields_are_reported_together(tmp_path: Path) -> None:
    text = WHOLE.replace("  protect: true\n", "").replace("output:", "outputs:")
    faults = _faults(tmp_path, text)
    assert sorted((fault.code, fault.path) for fault in faults) == [
        ("SPEC-004", "spec.buckets.outputs"),
        ("SPEC-005", "spec.buckets.output"),
        ("SPEC-005", "spec.protect"),
    ]


def test_fields_are_written_in_camel_case_only(tmp_path: Path) -> None:
    assert "SPEC-004" in {fault.code for fault in _faults(tmp_path, WHOLE.replace("apiVersion", "api_version"))}


@pytest.mark.parametrize("url", ["127.0.0.1:5000", "ftp://127.0.0.1", "http://127.0.0.1/path", "http://user:password@127.0.0.1"])
def test_an_endpoint_is_a_url_without_credentials_and_path(tmp_path: Path, url: str) -> None:
    (fault,) = _faults(tmp_path, f'{WHOLE}  endpoints:\n    aws: "{url}"\n')
    assert fault.path == "spec.endpoints.aws"


@pytest.mark.parametrize(
    "region", ["us-east-1", "ap-southeast-7", "us-gov-west-1", "cn-north-1", "me-central-1", "mx-central-1", "il-central-1"]
)
def test_regions_of_every_partition_are_accepted(region: str) -> None:
    data: dict[str, Any] = yaml.safe_load(WHOLE)
    data["spec"]["region"] = region
    assert Environment.model_validate(data).spec.region == region


PRODUCTION = (FOLDER / "production.yaml").read_text(encoding="utf-8")


def test_production_has_a_cluster_and_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    production = load("production")
    assert production.spec.eks is not None
    assert production.spec.nodes is not None
    assert [pool.name for pool in production.spec.nodes.pools] == ["drivers", "executors"]
    file = tmp_path / "production.yaml"
    file.write_text(production.text())
    assert load(file) == production


@pytest.mark.parametrize(
    ("old", "new", "path", "need"),
    [
        ('version: "1.35"', "version: 1.30", "spec.eks.version", "in quotes"),
        ("us-east-1c]", "us-west-2c]", "spec.network", "zones of us-east-1; not in this region: us-west-2c"),
        ("us-east-1c]", "us-east-1b]", "spec.network.zones", "each zone once"),
        ("natGateways: 3", "natGateways: 4", "spec.network.natGateways", "at most one NAT gateway per zone: 3"),
        ("operator: Gt", "operator: Above", "spec.nodes.pools[0].requirements[2].operator", "Gt"),
        ("name: executors", "name: drivers", "spec.nodes.pools", "duplicate: drivers"),
        ('nodes: "1"', 'nodes: "101%"', "spec.nodes.pools[0].disruption.budgets[0].nodes", "100"),
        ("consolidateAfter: 5m", "consolidateAfter: 5", "spec.nodes.pools[0].disruption.consolidateAfter", "ms, s, m, h or d"),
        ("cpu: 50m}", "cpu: -50m}", "spec.nodes.daemonSets[0].cpu", "cores"),
        ("memory: 104Mi", "memory: 1Gib", "spec.nodes.daemonSets[2].memory", "integer"),
        ("spotRatio: 0.4", "spotRatio: 0", "spec.nodes.spotRatio", "0"),
        ("kind: standard", "kind: large", "spec.kafka.kind", "serverless"),
    ],
)
def test_an_invalid_value_of_the_cluster_is_reported_with_its_path(tmp_path: Path, old: str, new: str, path: str, need: str) -> None:
    assert old in PRODUCTION
    faults = _faults(tmp_path, PRODUCTION.replace(old, new, 1))
    assert [fault.path for fault in faults] == [path]
    assert need in faults[0].need
    assert faults[0].at is not None


def test_a_cluster_is_whole_or_not_there(tmp_path: Path) -> None:
    start, end = PRODUCTION.index("  eks:"), PRODUCTION.index("  nodes:\n")
    (fault,) = _faults(tmp_path, PRODUCTION[:start] + PRODUCTION[end:])
    assert "missing: eks" in fault.need


def test_jobs_that_an_environment_names_and_that_do_not_exist_are_all_reported_with_their_lines(tmp_path: Path) -> None:
    text = (FOLDER / "production.yaml").read_text(encoding="utf-8").replace("../../jobs/specs/", "jobs/")
    copied = tmp_path / "mine.yaml"
    copied.write_text(text, encoding="utf-8")
    with pytest.raises(PenstockError) as raised:
        plans(load(copied))
    lines = text.splitlines()
    for error in raised.value.errors:
        assert error.code == "SPEC-001"
        assert error.at is not None
        assert error.at.line is not None
        assert error.given.strip('"') in lines[error.at.line - 1]
        assert error.need.endswith("does not exist")
    assert len(raised.value.errors) == len([line for line in lines if line.strip().startswith("- jobs/")]) > 1


def test_the_folders_of_apps_are_relative_to_the_environments_file(tmp_path: Path) -> None:
    text = (FOLDER / "local.yaml").read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text(text.replace("\nspec:\n", "\nspec:\n  appPath: [apps, ../shared]\n"), encoding="utf-8")
    assert load(tmp_path / "own.yaml").spec.app_path == [str(tmp_path / "apps"), str(tmp_path.parent / "shared")]
