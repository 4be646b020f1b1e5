"""The network and cluster stacks of changed environments, each synthesized once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load

Change = Callable[[dict[str, Any]], None]
Resource = dict[str, Any]
DEPLOYER = "arn:aws:iam::111122223333:role/platform/deploy"


class Stack:
    """A synthesized stack."""

    def __init__(self, content: str) -> None:
        self.content: dict[str, Any] = json.loads(content)

    def kind(self, kind: str) -> dict[str, Resource]:
        """The resources of a kind, by name."""
        resources: dict[str, Resource] = self.content.get("resource", {}).get(kind, {})
        return {name: {key: value for key, value in resource.items() if key != "//"} for name, resource in resources.items()}

    def one(self, kind: str, name: str) -> Resource:
        """A resource."""
        return self.kind(kind)[name]

    def addresses(self) -> set[str]:
        """Of all the resources."""
        return {f"{kind}.{name}" for kind, named in self.content.get("resource", {}).items() for name in named}

    def statements(self, kind: str, name: str, field: str = "policy") -> list[dict[str, Any]]:
        """Of a policy."""
        parsed: list[dict[str, Any]] = json.loads(self.one(kind, name)[field])["Statement"]
        return parsed

    def outputs(self) -> dict[str, Any]:
        """By name, without those that cdktf adds for other stacks."""
        outputs = self.content["output"]
        return {name: output["value"] for name, output in outputs.items() if not name.startswith("cross-stack")}


def environment(change: Change | None = None) -> Environment:
    """The production environment with an administrator and a changed spec."""
    data = load("production").model_dump(by_alias=True, exclude_none=True)
    data["spec"]["eks"]["admins"] = [DEPLOYER]
    data["spec"]["network"] = {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"], "natGateways": 3}
    data["spec"].pop("state", None)
    if change is not None:
        change(data["spec"])
    return Environment.model_validate(data)


def stacks(of_environment: Environment) -> tuple[Stack, Stack]:
    """The network stack and the cluster stack."""
    network, cluster = _synthesized(of_environment.model_dump_json(by_alias=True, exclude_none=True))
    return Stack(network), Stack(cluster)


@cache
def _synthesized(environment_text: str) -> tuple[str, str]:
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    from cdktf import App

    from penstock.infra.stacks.cluster import ClusterStack
    from penstock.infra.stacks.network import NetworkStack

    environment = Environment.model_validate_json(environment_text)
    with TemporaryDirectory() as folder:
        app = App(outdir=folder)
        ClusterStack(app, environment, NetworkStack(app, environment).outputs)
        app.synth()
        made = Path(folder, "stacks")
        return (made / "network/cdk.tf.json").read_text("utf-8"), (made / "cluster/cdk.tf.json").read_text("utf-8")
