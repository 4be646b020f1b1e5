"""The observability stacks of test environments, with plain strings in place of other stacks' outputs."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.plans import EnvironmentPlans, plans
from penstock.scripts.layout import ROOT

Stack = dict[str, Any]


@dataclass(frozen=True)
class Outputs:
    """The outputs of other stacks that the observability stacks use."""

    vpc_id: str = "vpc-1"
    private_subnet_ids: tuple[str, ...] = ("subnet-1", "subnet-2", "subnet-3")
    cluster_name: str = "penstock-watched"
    cluster_endpoint: str = "https://cluster.example"
    cluster_ca: str = "Y2E="
    node_security_group_ids: tuple[str, ...] = ("sg-1",)
    interruption_queue: str = "penstock-watched"


def environment(name: str = "watched", **changes: Any) -> Environment:
    """The shipped production environment with the shipped jobs and some changed parts.

    Args:
        name: of the environment.
        changes: parts of its spec.
    """
    data = load("production").model_dump(by_alias=True, exclude_none=True)
    data["metadata"]["name"] = name
    data["spec"] |= {"jobs": [str(ROOT / f"jobs/specs/{job}.yaml") for job in ("flights", "user_credit")], **changes}
    return Environment.model_validate(data)


def planned(environment: Environment) -> EnvironmentPlans:
    """The plans of its jobs."""
    return plans(environment)


def synthesized(folder: Path, environment: Environment, *, cluster: bool = True) -> dict[str, Stack]:
    """Both stacks of an environment: id -> cdk.tf.json. Without a cluster there are no charts."""
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    from cdktf import App

    from penstock.infra.stacks.observability import ObservabilityStack
    from penstock.infra.stacks.observability_charts import ObservabilityChartsStack

    app = App(outdir=str(folder))
    jobs, outputs = planned(environment), Outputs()
    upstream = outputs if cluster else None
    stack = ObservabilityStack(app, environment, jobs, network=upstream, cluster=upstream, karpenter=upstream)
    if cluster:
        ObservabilityChartsStack(app, environment, jobs, outputs, stack.outputs)
    app.synth()
    return {path.parent.name: json.loads(path.read_text()) for path in folder.glob("stacks/*/cdk.tf.json")}
