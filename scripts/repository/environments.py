"""The environments of a new repository: the shipped ones, with its account, region, buckets, brokers and jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_lowercase

from penstock.infra.environment_file import FOLDER
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.infra.parts.network import ExistingNetwork
from penstock.scripts.repository.answers import Answers

_HEADS = {
    "local": "# On this machine, with emulated AWS: `penstock up` and `penstock synth local`.\n",
    "dev": "# For experiments: nothing is protected. Set the roles in `admins`, `publicAccessCidrs` and the recipients below.\n",
    "production": "# Set the roles in `admins`, the recipients of alarms and of the budget, and the budget itself.\n",
}
_ZONES = 3
# Of the shipped environments.
_CONNECTIONS = re.compile(r"(?m)^(?:  #.*\n)?  connections:\n(?:    .*\n)+")
_JOBS = re.compile(r"(?m)^  jobs:\n(?:    - .*\n)+")
_KAFKA = re.compile(r"(?m)^  kafka:\n(?:    .*\n)+")
_EKS = re.compile(r'(?m)^    version: "(?P<version>.*)"\n(?P<karpenter>    karpenterVersion: .*\n)    #.*\n    publicAccessCidrs: .*\n')
_NETWORK = re.compile(r"(?m)^    zones: .*\n(?:    (?:natGateways|cidr): .*\n)+")


def environments(answers: Answers) -> Mapping[str, str]:
    """Name -> text of each environment.

    Args:
        answers: what the repository is made with.
    """
    return {name: _written(name, answers) for name in _HEADS}


def _written(name: str, answers: Answers) -> str:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    _, _, body = text.partition("apiVersion:")
    body = _once(_CONNECTIONS, "", f"apiVersion:{body}")
    body = _once(
        _JOBS,
        "  # Where the jobs' apps are looked up: the image and `penstock up` take them from there.\n  appPath: [..]\n"
        "  jobs:\n    - ../specs/page_views.yaml\n",
        body,
    )
    body = _buckets(name, answers, body)
    return _HEADS[name] + (body if name == "local" else _on_aws(name, answers, body))


def _buckets(name: str, answers: Answers, body: str) -> str:
    # Names of buckets are unique in all of AWS.
    owner = "" if name == "local" else f"-{answers.account}"
    return re.sub(rf"penstock-{name}-(\w+)", rf"{answers.name}-{name}-\1{owner}", body)


def _on_aws(name: str, answers: Answers, body: str) -> str:
    body = re.sub(r"\b(444455556666|111122223333)\b", answers.account, body)
    body = _once(re.compile(r"(?m)^  region: .*$"), f"  region: {answers.region}", body)
    body = _once(re.compile(r"(?m)^    team: .*$"), f"    team: {answers.name}", body)
    body = _once(_KAFKA, f"  kafka:\n    kind: {answers.kafka}\n    retention: 24h\n", body)
    if name == "production" and answers.cluster is not None:
        body = _once(_EKS, _cluster(answers.cluster, answers.cluster_version, body), body)
    return _once(_NETWORK, _network(answers, body), body)


def _network(answers: Answers, body: str) -> str:
    count = len(answers.existing.private_subnet_ids) if answers.existing is not None else _ZONES
    zones = ", ".join(f"{answers.region}{letter}" for letter in ascii_lowercase[:count])
    if answers.existing is None:
        found = _NETWORK.search(body)
        assert found is not None
        return re.sub(r"zones: .*", f"zones: [{zones}]", found[0])
    return f"    zones: [{zones}]\n{_existing(answers.existing)}"


def _existing(vpc: ExistingNetwork) -> str:
    lists = [f"      privateSubnetIds: [{', '.join(vpc.private_subnet_ids)}]"]
    if vpc.public_subnet_ids:
        lists.append(f"      publicSubnetIds: [{', '.join(vpc.public_subnet_ids)}]")
    return "\n".join(["    existing:", f"      vpcId: {vpc.vpc_id}", f"      cidr: {vpc.cidr}", *lists]) + "\n"


def _cluster(existing: ExistingCluster, version: str | None, body: str) -> str:
    found = _EKS.search(body)
    assert found is not None
    role = [] if existing.node_role is None else [f"      nodeRole: {existing.node_role}"]
    return "\n".join(
        [
            f'    version: "{version or found["version"]}"',
            *([found["karpenter"].rstrip()] if existing.karpenter == "create" else []),
            "    existing:",
            f"      name: {existing.name}",
            f"      karpenter: {existing.karpenter}",
            *role,
            "    # Without an access entry of the cluster's owners: the stacks create one for each.\n",
        ]
    )


def _once(pattern: re.Pattern[str], text: str, body: str) -> str:
    changed, count = pattern.subn(lambda _: text, body)
    assert count == 1, f"{pattern.pattern}: {count} times in a shipped environment"
    return changed
