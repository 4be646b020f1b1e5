"""``penstock init [FOLDER]``: makes a repository of a team, with one app that runs at once."""

from __future__ import annotations

import argparse
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from penstock.infra.parts.existing_cluster import Whose
from penstock.scripts.layout import ROOT
from penstock.scripts.repository.answers import Answers, Kafka
from penstock.scripts.repository.contents import contents
from penstock.scripts.repository.errors import WrongAnswer
from penstock.scripts.repository.writing import refuse_a_full_folder, write
from penstock.sizing.catalog.catalog import SHIPPED_REGION
from penstock.sizing.errors import raise_all

_DISTRIBUTION = "penstock-kit"
# Of nobody, as in the shipped environments: it is replaced before the first deploy.
_ACCOUNT, _REGION, _KAFKA, _NEW = "111122223333", "us-east-1", "serverless", "new"
_VERSION, _KARPENTER = "1.35", "existing"
_OPTIONS = {
    "existing": "--private-subnets",
    "existing.vpcId": "--vpc",
    "existing.cidr": "--vpc-cidr",
    "existing.privateSubnetIds": "--private-subnets",
    "cluster": "--node-role",
    "cluster.name": "--cluster",
    "cluster.karpenter": "--karpenter",
    "cluster.nodeRole": "--node-role",
    "cluster_version": "--cluster-version",
}
# Of an option, a question and its default: what was given, or answered.
_Answer = Callable[[str | None, str, str], str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = "On a terminal, what is not given is asked for; --yes takes the defaults, and so does a run without a terminal."
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="new or empty (default: the current one)")
    parser.add_argument("--name", help="of the repository and its package (default: the folder's)")
    parser.add_argument("--account", help=f"AWS account of dev and production, 12 digits (default: {_ACCOUNT}, to be replaced)")
    parser.add_argument("--region", help=f"AWS region (default: {_REGION})")
    parser.add_argument("--kafka", choices=get_args(Kafka), help=f"kind of MSK cluster (default: {_KAFKA})")
    parser.add_argument("--vpc", metavar="VPC-ID", help="an existing VPC, with --vpc-cidr and --private-subnets (default: a new one)")
    parser.add_argument("--vpc-cidr", metavar="CIDR", help="of the existing VPC")
    parser.add_argument("--private-subnets", metavar="ID,ID,ID", help="of the existing VPC, one in each of the zones a, b, ...")
    parser.add_argument("--cluster", metavar="NAME", help="an existing EKS cluster in that VPC, for production (default: a new one)")
    parser.add_argument("--cluster-version", metavar="1.N", help=f"its Kubernetes version (default: {_VERSION})")
    parser.add_argument(
        "--karpenter", choices=get_args(Whose), help=f"whether the stacks install Karpenter in it, or it has one (default: {_KARPENTER})"
    )
    parser.add_argument("--node-role", metavar="NAME", help="IAM role of the nodes of its Karpenter")
    parser.add_argument("--yes", action="store_true", help="ask nothing")


def run(arguments: argparse.Namespace) -> int:
    """Makes the repository, and says how to go on.

    Returns:
        0.

    Raises:
        PenstockError: INIT-001 to INIT-003.
    """
    folder = arguments.folder.resolve()
    refuse_a_full_folder(folder)
    answers = _answers(arguments, folder)
    write(folder, contents(answers, _version()))
    here = "" if folder == Path.cwd() else f"cd {shlex.quote(str(arguments.folder))}\n"
    print(
        f"{folder} has the app {answers.package}.page_views, its spec, and three environments. Next:\n\n"
        f"{here}python3 -m venv .venv\n.venv/bin/python -m pip install --editable .\n"
        ".venv/bin/penstock setup\n.venv/bin/penstock up\n.venv/bin/python -m pytest\n\n"
        f"{_without_a_catalog(answers.region)}README.md says what each file is for."
    )
    return 0


def _without_a_catalog(region: str) -> str:
    if region == SHIPPED_REGION:
        return ""
    file = f"catalog.{region}.json"
    return (
        f"The kit has no instance types and prices of {region}. Before the stacks of dev and production are synthesized, fetch them with\n"
        f"AWS credentials, and name the file in both environments as `catalog: {file}`:\n\n"
        f".venv/bin/penstock catalog refresh --region {region} --out environments/{file}\n\n"
    )


def _version() -> str:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:
        # In a checkout, whose packages are not installed.
        with (ROOT / "pyproject.toml").open("rb") as file:
            return str(tomllib.load(file)["project"]["version"])


def _answers(arguments: argparse.Namespace, folder: Path) -> Answers:
    asks = sys.stdin.isatty() and not arguments.yes

    def answer(given: str | None, question: str, default: str) -> str:
        return given or (_asked(question, default) if asks else default)

    given: dict[str, Any] = {
        "name": answer(arguments.name, "Name of the repository", folder.name.lower().replace("_", "-")),
        "account": answer(arguments.account, "AWS account", _ACCOUNT),
        "region": answer(arguments.region, "AWS region", _REGION),
        "kafka": answer(arguments.kafka, f"MSK cluster ({', '.join(get_args(Kafka))})", _KAFKA),
        **_network(arguments, answer),
    }
    if "existing" in given:
        given |= _cluster(arguments, answer)
    try:
        return Answers.model_validate(given)
    except ValidationError as error:
        raise_all(_wrong(given, fault) for fault in error.errors())
        raise


def _network(arguments: argparse.Namespace, answer: _Answer) -> dict[str, Any]:
    named = arguments.vpc or arguments.vpc_cidr or arguments.private_subnets
    # Nodes in a new VPC can't join an existing cluster.
    vpc = arguments.vpc if named else answer(None, "Id of an existing VPC, or new", "" if _of_cluster(arguments) else _NEW)
    if vpc == _NEW and not _of_cluster(arguments):
        return {}
    cidr = answer(arguments.vpc_cidr, "Its CIDR", "")
    subnets = answer(arguments.private_subnets, "Ids of a private subnet in each of the zones a, b, ...", "")
    private = [one.strip() for one in subnets.split(",") if one.strip()]
    return {"existing": {"vpcId": vpc or "", "cidr": cidr, "privateSubnetIds": private}}


def _cluster(arguments: argparse.Namespace, answer: _Answer) -> dict[str, Any]:
    name = arguments.cluster or ("" if _of_cluster(arguments) else answer(None, "EKS cluster in it for production, or new", _NEW))
    if name == _NEW:
        return {}
    version = answer(arguments.cluster_version, "Its Kubernetes version", _VERSION)
    karpenter = answer(arguments.karpenter, "Its Karpenter: existing, or create to have it installed", _KARPENTER)
    role = arguments.node_role or (answer(None, "IAM role of its Karpenter's nodes", "") if karpenter == "existing" else "")
    return {"cluster": {"name": name, "karpenter": karpenter, **({"nodeRole": role} if role else {})}, "cluster_version": version}


def _of_cluster(arguments: argparse.Namespace) -> bool:
    """Whether an option is of an existing cluster."""
    return any((arguments.cluster, arguments.cluster_version, arguments.karpenter, arguments.node_role))


def _asked(question: str, default: str) -> str:
    sys.stderr.write(f"{question} [{default}]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or default


def _wrong(given: Mapping[str, Any], fault: Any) -> WrongAnswer:
    field, *inner = map(str, fault["loc"])
    value = given.get(field)
    # What is wrong with a VPC or a cluster as a whole has the option that corrects it.
    option = _OPTIONS.get(".".join([field, *inner[:1]]), f"--{field}")
    if isinstance(value, Mapping):
        value = value.get(inner[0] if inner else "nodeRole" if field == "cluster" else "privateSubnetIds")
    need = str(fault["msg"]).removeprefix("Value error, ")
    return WrongAnswer(path=option, given=repr(value), need=need, fix=f"give another {option}")
