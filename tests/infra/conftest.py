from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from tests.infra.environments import BARE

Synthesized = dict[str, Any]


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Environment], Synthesized]:
    """Synthesizes the checkpoints stack of an environment to its cdk.tf.json. cdktf is started once per session."""
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    from cdktf import App

    from penstock.infra.stacks.checkpoints import CheckpointsStack

    @cache
    def one(environment: str) -> str:
        folder = tmp_path_factory.mktemp("synth")
        app = App(outdir=str(folder))
        CheckpointsStack(app, Environment.model_validate_json(environment))
        app.synth()
        return Path(folder, "stacks/checkpoints/cdk.tf.json").read_text()

    def parsed(environment: Environment) -> Synthesized:
        content: Synthesized = json.loads(one(environment.model_dump_json(by_alias=True, exclude_none=True)))
        return content

    return parsed


@pytest.fixture(scope="session")
def local(synthesize: Callable[[Environment], Synthesized]) -> Synthesized:
    """The checkpoints stack of the local environment."""
    return synthesize(load("local"))


@pytest.fixture(scope="session")
def protected(synthesize: Callable[[Environment], Synthesized]) -> Synthesized:
    """The checkpoints stack of a protected environment on AWS."""
    data = load(BARE).model_dump(by_alias=True, exclude_none=True)
    data["metadata"]["name"] = "protected"
    data["spec"].update(protect=True, region="eu-central-1", account="123456789012", tags={"team": "data"})
    return synthesize(Environment.model_validate(data))
