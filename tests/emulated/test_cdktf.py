from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from infra.__main__ import ENVIRONMENT_VARIABLE
from scripts import layout
from scripts.errors import NotSetUp


def test_cdktf_itself_synthesizes_the_stacks(tmp_path: Path) -> None:
    try:
        command = layout.cdktf()
    except NotSetUp as error:
        pytest.skip(error.render())
    environment = {**os.environ, ENVIRONMENT_VARIABLE: "local", "CHECKPOINT_DISABLE": "1", "CI": "1"}
    ran = subprocess.run(
        [command, "synth", "--output", tmp_path / "out"],
        cwd=layout.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert list(manifest["stacks"]) == ["checkpoints"]
    assert (tmp_path / "out/stacks/checkpoints/cdk.tf.json").exists()
