"""The releases of the charts stacks, read from what cdktf synthesized, and helm on them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.scripts.provisioning.stacks import Stack

# What other stacks give, which Terraform puts in when it runs: the end of the output's name -> a value of its kind.
_STAND_INS = {
    "bootstrap_brokers_sasl_iam": "b-1.penstock.c2.kafka.us-east-1.amazonaws.com:9098,b-2.penstock.c2.kafka.us-east-1.amazonaws.com:9098",
    "repository_url": "111122223333.dkr.ecr.us-east-1.amazonaws.com/penstock-production/jobs",
    "checkpointsbucket": "penstock-production-checkpoints",
    "outputbucket": "penstock-production-output",
    "security_group_id": "sg-0123456789abcdef0",
    # Of the subnets, which end with the zone: private-us-east-1aid.
    **{f"{zone}id": f"subnet-0123456789abcdef{number}" for number, zone in enumerate("abc")},
    "arn": "arn:aws:iam::111122223333:role/penstock-production-stand-in",
    "name": "penstock-production-stand-in",
}
_EXPRESSION = re.compile(r"(?<!\$)\$\{([^}]*)\}")


@dataclass(frozen=True)
class Release:
    """A release of the local chart.

    Args:
        name: of the release.
        namespace: where Helm notes it.
        chart: the chart's folder.
        values: its values, in JSON.
    """

    name: str
    namespace: str
    chart: Path
    values: str

    @property
    def manifests(self) -> list[dict[str, Any]]:
        """What it consists of, without its hooks."""
        return [one for one in self.given if not _is_hook(one)]

    @property
    def hooks(self) -> list[dict[str, Any]]:
        """What Helm applies before an upgrade only."""
        return [one for one in self.given if _is_hook(one)]

    @property
    def given(self) -> list[dict[str, Any]]:
        """All that the chart is given."""
        manifests: list[dict[str, Any]] = json.loads(self.values)["manifests"]
        return manifests

    def values_file(self, folder: Path) -> Path:
        """Its values as a file."""
        file = folder / f"{self.name}.json"
        file.write_text(self.values, encoding="utf-8")
        return file


def releases(stacks: Iterable[Stack], outputs: Mapping[str, str] | None = None) -> list[Release]:
    """The releases of local charts, in the order of the stacks; those of charts from a repository are left out.

    Args:
        stacks: what cdktf synthesized.
        outputs: end of the name of another stack's output -> its value, before the stand-ins.
    """
    given = outputs or {}
    values = {**given, **{end: value for end, value in _STAND_INS.items() if end not in given}}
    result = (
        (stack, release)
        for stack in stacks
        for address, release in stack.resources()
        if address.startswith("helm_release.") and release["chart"].startswith("./")
    )
    return [
        Release(release["name"], release["namespace"], stack.folder / release["chart"], as_terraform_puts_it(release["values"][0], values))
        for stack, release in result
    ]


def as_terraform_puts_it(text: str, outputs: Mapping[str, str] = _STAND_INS) -> str:
    """A text of cdk.tf.json as Terraform hands it on: expressions are filled in, what only looks like one is text again."""

    def value(expression: re.Match[str]) -> str:
        return next(value for end, value in outputs.items() if expression.group(1).endswith(end))

    return _EXPRESSION.sub(value, text).replace("$${", "${").replace("%%{", "%{")


def templated(helm: Path, release: Release, folder: Path) -> list[dict[str, Any]]:
    """What `helm template` makes of a release."""
    said = ran(helm, "template", release.name, release.chart, "--namespace", release.namespace, "--values", release.values_file(folder))
    return [document for document in yaml.safe_load_all(said) if document]


def ran(helm: Path, *arguments: str | Path) -> str:
    """Helm's standard output; what it says against something is a failure."""
    done = attempted(helm, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempted(helm: Path, *arguments: str | Path, limit_s: int = 120) -> subprocess.CompletedProcess[str]:
    """Helm without anything of the user's."""
    home = helm.parent
    environment = {name: str(home / f".{name.lower()}") for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HOME")}
    return subprocess.run([helm, *arguments], env=environment, capture_output=True, text=True, timeout=limit_s, check=False)


def _is_hook(manifest: Mapping[str, Any]) -> bool:
    return "helm.sh/hook" in manifest["metadata"].get("annotations", {})


def named(manifests: Sequence[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Objects by kind, namespace and name."""
    result = {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in manifests}
    assert len(result) == len(manifests)
    return result
