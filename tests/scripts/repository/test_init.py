"""``penstock init``: what it refuses, and what it writes. That it works is a test of the tier emulated."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
import yaml

from penstock.infra.environment_file import load
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.infra.parts.network import ExistingNetwork
from penstock.jobs.spec import load as load_spec
from penstock.scripts.cli.command import main
from penstock.scripts.repository.answers import Answers
from penstock.scripts.repository.contents import contents
from penstock.scripts.repository.errors import FolderNotWritten
from penstock.scripts.repository.writing import write

ANSWERS = Answers(name="page-stats", account="123456789012", region="us-east-1")
SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
VPC = ExistingNetwork.model_validate({"vpcId": "vpc-0123456789abcdef0", "cidr": "10.7.0.0/16", "privateSubnetIds": SUBNETS})
OF_VPC = ["--vpc", VPC.vpc_id, "--vpc-cidr", VPC.cidr, "--private-subnets", ",".join(SUBNETS)]


def _files(folder: Path) -> Mapping[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in folder.rglob("*") if file.is_file()}


def _init(*words: str) -> int:
    return main(["init", *words, "--yes"])


def test_it_writes_a_repository_and_overwrites_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "page-stats"
    assert _init(str(folder)) == 0
    files = _files(folder)
    assert files.keys() >= {
        "pyproject.toml",
        "cdktf.json",
        "package.json",
        "Dockerfile",
        ".dockerignore",
        "README.md",
        ".gitignore",
        ".github/workflows/penstock.yaml",
    }
    assert files.keys() >= {"page_stats/page_views.py", "specs/page_views.yaml", "tests/test_sections.py", "environments/production.yaml"}
    assert not [name for name, text in files.items() if re.search(r"\{\{\w+\}\}", text.replace("${{", ""))]
    assert str(folder) in capsys.readouterr().out
    assert _init(str(folder)) == 2
    assert "INIT-001" in capsys.readouterr().err
    assert _files(folder) == files
    # Nothing beside it.
    assert [one.name for one in tmp_path.iterdir()] == ["page-stats"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--name", "class"], "--name = 'class'"),
        (["--name", "Page Stats"], "such as page-views"),
        (["--name", "json"], "whose package, json, is not a module"),
        (["--name", "a" * 28], "--name"),
        (["--account", "12"], "--account = '12'"),
        (["--region", "eu-cental-1"], "did you mean eu-central-1"),
        (["--vpc", "vpc-1"], "--vpc"),
        (["--vpc-cidr", "10.0.0.0/16"], "--vpc"),
        (["--vpc", "vpc-0123456789abcdef0", "--vpc-cidr", "10.0.0.0/16"], "2 to 6 private subnets"),
        (["--cluster", "platform"], "--vpc = ''"),
        ([*OF_VPC, "--cluster", "platform"], "--node-role = None"),
        ([*OF_VPC, "--cluster", "platform", "--node-role", "a/b"], "--node-role = 'a/b'"),
        ([*OF_VPC, "--cluster", "platform", "--karpenter", "create", "--node-role", "nodes"], "no nodeRole"),
        ([*OF_VPC, "--cluster", "-", "--karpenter", "create"], "--cluster = '-'"),
        ([*OF_VPC, "--cluster", "platform", "--karpenter", "create", "--cluster-version", "2"], "--cluster-version = '2'"),
        ([*OF_VPC, "--node-role", "nodes"], "--cluster = ''"),
    ],
)
def test_a_wrong_answer_is_refused_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    folder = tmp_path / "page-stats"
    assert _init(str(folder), *words) == 2
    error = capsys.readouterr().err
    assert "INIT-002" in error and said in error
    assert not folder.exists()


def test_it_takes_the_current_folder_and_a_clone_without_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "page-stats"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main")
    before = folder.stat().st_ino
    monkeypatch.chdir(folder)
    assert _init() == 0
    # The folder that a shell is in must not be replaced.
    assert folder.stat().st_ino == before
    assert (folder / ".git/HEAD").read_text() == "ref: refs/heads/main"
    assert (folder / "page_stats/page_views.py").is_file()
    assert not [one.name for one in folder.iterdir() if one.name.startswith(".page-stats")]


def test_a_folder_that_cannot_be_filled_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, calls = Path.rename, 0

    def full(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError(28, "No space left on device", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(FolderNotWritten):
        write(tmp_path, contents(ANSWERS, "1.2.3"))
    assert list(tmp_path.iterdir()) == []


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_asks_for_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = ["", "123456789012", "", VPC.vpc_id, VPC.cidr, ", ".join(SUBNETS)]
    monkeypatch.setattr("sys.stdin", _Terminal("\n".join(answers) + "\n"))
    assert main(["init", str(tmp_path / "page-stats"), "--kafka", "express"]) == 0
    asked = capsys.readouterr().err
    assert "Name of the repository [page-stats]" in asked and "MSK" not in asked
    environment = load(tmp_path / "page-stats/environments/dev.yaml")
    assert environment.spec.account == "123456789012"
    assert environment.spec.kafka is not None and environment.spec.kafka.kind == "express"
    assert environment.spec.network is not None and environment.spec.network.existing == VPC


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            ["platform", "1.34", "", "nodes"],
            ("1.34", ExistingCluster.model_validate({"name": "platform", "karpenter": "existing", "nodeRole": "nodes"})),
        ),
        (["platform", "", "create"], ("1.35", ExistingCluster.model_validate({"name": "platform", "karpenter": "create"}))),
        ([""], ("1.35", None)),
    ],
    ids=["with Karpenter", "without Karpenter", "a new one"],
)
def test_on_a_terminal_it_asks_for_a_cluster_in_an_existing_vpc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[str], expected: tuple[str, ExistingCluster | None]
) -> None:
    stdin = _Terminal("\n".join(["", "", "", "", *answers]) + "\n")
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["init", str(tmp_path / "page-stats"), *OF_VPC]) == 0
    assert stdin.read() == ""
    environment = load(tmp_path / "page-stats/environments/production.yaml")
    assert environment.spec.eks is not None
    assert (environment.spec.eks.version, environment.spec.eks.existing) == expected


@pytest.mark.parametrize("words", [["--node-role", "nodes"], ["--karpenter", "create"]], ids=["with Karpenter", "without Karpenter"])
def test_production_runs_in_an_existing_cluster_and_dev_in_one_of_its_own(tmp_path: Path, words: list[str]) -> None:
    assert _init(str(tmp_path / "new")) == 0
    assert _init(str(tmp_path / "shared"), *OF_VPC, "--cluster", "platform", *words) == 0
    new, production, dev = (
        load(tmp_path / f"{name}.yaml")
        for name in ("new/environments/production", "shared/environments/production", "shared/environments/dev")
    )
    assert production.existing_cluster is not None and production.existing_cluster.name == "platform"
    assert [one.spec.network.existing for one in (production, dev) if one.spec.network is not None] == [VPC, VPC]
    assert new.spec.eks is not None and production.spec.eks is not None and dev.spec.eks is not None
    assert (production.spec.eks.version, production.spec.eks.admins) == (new.spec.eks.version, new.spec.eks.admins)
    # A cluster has room for one environment.
    assert dev.existing_cluster is None and dev.spec.eks.public_access_cidrs
    # An emulated AWS has no cluster of others.
    assert 'aws_stacks("dev")' in (tmp_path / "shared/environments/test_stacks.py").read_text("utf-8")
    assert 'aws_stacks("production")' in (tmp_path / "new/environments/test_stacks.py").read_text("utf-8")


def test_all_wrong_answers_are_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _init(str(tmp_path / "page-stats"), "--account", "12", "--vpc", "vpc-1", "--vpc-cidr", "10.7") == 2
    error = capsys.readouterr().err
    assert "--account = '12'" in error and "--vpc = 'vpc-1'" in error and "--vpc-cidr = '10.7'" in error


def test_a_region_without_a_shipped_catalog_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _init(str(tmp_path / "page-stats"), "--region", "eu-central-1") == 0
    assert "catalog refresh --region eu-central-1 --out environments/catalog.eu-central-1.json" in capsys.readouterr().out
    assert _init(str(tmp_path / "others")) == 0
    assert "catalog" not in capsys.readouterr().out


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page-stats").write_text("mine")
    assert _init(str(tmp_path / "page-stats")) == 2
    assert "INIT-001" in capsys.readouterr().err
    assert (tmp_path / "page-stats").read_text() == "mine"


@pytest.mark.parametrize("kafka", ["standard", "express", "serverless"])
@pytest.mark.parametrize("existing", [None, VPC], ids=["new VPC", "existing VPC"])
def test_its_environments_are_valid(tmp_path: Path, kafka: str, existing: ExistingNetwork | None) -> None:
    answers = ANSWERS.model_copy(update={"kafka": kafka, "existing": existing})
    for name, text in contents(answers, "1.2.3").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("local", "dev", "production"):
        environment = load(tmp_path / f"environments/{name}.yaml")
        assert environment.name == name
        assert environment.spec.job_paths == [tmp_path / "specs/page_views.yaml"]
        assert environment.spec.connections == {}
        if name != "local":
            assert environment.spec.account == ANSWERS.account
            assert environment.spec.network is not None and environment.spec.network.existing == existing
            assert environment.spec.kafka is not None and environment.spec.kafka.kind == kafka
            assert environment.spec.buckets.checkpoints == f"page-stats-{name}-checkpoints-{ANSWERS.account}"
    assert load_spec(tmp_path / "specs/page_views.yaml").job.spec.app == "page_stats.page_views"


def test_what_it_pins_is_the_kit_and_what_it_calls_exists() -> None:
    files = contents(ANSWERS, "1.2.3")
    assert "penstock-kit[all]==1.2.3" in tomllib.loads(files["pyproject.toml"])["project"]["dependencies"]
    assert json.loads(files["package.json"])["dependencies"].keys() == {"cdktf-cli"}
    assert json.loads(files["package-lock.json"])["name"] == "page-stats"
    assert "resolved" not in files["package-lock.json"]
    for name, text in files.items():
        if name.endswith(".py"):
            ast.parse(text)
    steps = yaml.safe_load(files[".github/workflows/penstock.yaml"])["jobs"]["check"]["steps"]
    scripts = {step["id"]: step["run"] for step in steps if "id" in step}
    assert scripts["test"] == ".venv/bin/python -m pytest"
    assert scripts["check"] == ".venv/bin/penstock check specs/*.yaml"
    assert "image context" in str(yaml.safe_load(files["ci/concourse.yaml"]))
