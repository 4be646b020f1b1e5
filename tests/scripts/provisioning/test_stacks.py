from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.infra.errors import NodeNotFound
from penstock.scripts.errors import SynthFailed
from penstock.scripts.provisioning import stacks


def test_a_synth_without_node_is_told_with_what_is_missing(tmp_path: Path) -> None:
    """What the app finds wrong keeps its own code and exit code, and is no synth that failed."""
    with pytest.raises(NodeNotFound) as raised:
        stacks.synthesize(load("local"), tmp_path, base={**os.environ, "PATH": str(tmp_path)})
    assert raised.value.exit_code == 4


def test_a_synth_beyond_its_limit_is_ended(tmp_path: Path) -> None:
    with pytest.raises(SynthFailed) as raised:
        stacks.synthesize(load("local"), tmp_path, limit_s=0.01)
    assert raised.value.need == "an end within 0.01 s"


@pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")
def test_the_folders_of_the_stacks_come_back_and_their_states_lie_beside_them(tmp_path: Path) -> None:
    folders = stacks.synthesize(load("local"), tmp_path / "out", only=["checkpoints"])
    assert [folder.name for folder in folders] == ["checkpoints"]
    text = (folders[0] / "cdk.tf.json").read_text()
    assert '"path": "../../state/local/checkpoints.tfstate"' in text
    assert str(tmp_path) not in text


def test_stacks_come_after_those_that_they_depend_on() -> None:
    manifest = {name: {"name": name, "dependencies": others} for name, others in {"a": ["c"], "b": ["a"], "c": []}.items()}
    assert [stack["name"] for stack in stacks._in_order(manifest)] == ["c", "a", "b"]
