"""A single stack, synthesized with stand-ins for the outputs of others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Content = dict[str, Any]
NETWORK = SimpleNamespace(private_subnet_ids=("subnet-0123456789abcdef0", "subnet-0123456789abcdef1"))
CLUSTER = SimpleNamespace(
    cluster_name="the-cluster",
    cluster_endpoint="https://the-cluster.example",
    cluster_ca="Q0E=",
    node_security_group_ids=("sg-0123456789abcdef0",),
)
KARPENTER = SimpleNamespace(interruption_queue="the-queue", node_role_name="the-node-role", controller_role_arn="the-controller-role")


def of_cluster(environment: str) -> dict[str, Any]:
    """The condition that a role's trust holds for one environment's cluster alone, in the shipped environments' account and region."""
    arn = f"arn:${{data.aws_partition.partition.partition}}:eks:us-east-1:111122223333:cluster/penstock-{environment}"
    return {"StringEquals": {"aws:SourceAccount": "111122223333"}, "ArnLike": {"aws:SourceArn": arn}}


def content(folder: Path, name: str, add: Callable[[Any], object]) -> Content:
    """A stack's cdk.tf.json.

    Args:
        folder: to synthesize into.
        name: of the stack.
        add: adds the stack to the given app.
    """
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    from cdktf import App

    app = App(outdir=str(folder))
    add(app)
    app.synth()
    parsed: Content = json.loads((folder / "stacks" / name / "cdk.tf.json").read_text())
    return parsed
