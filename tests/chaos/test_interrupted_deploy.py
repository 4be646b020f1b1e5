"""The command itself, interrupted in the midst of an apply."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.infra.environment import Environment
from penstock.scripts.cli import deploy
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.layout import ROOT
from penstock.scripts.provisioning import state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.small_stacks import environment


@pytest.fixture
def whole(aws: EmulatedAws, tmp_path: Path) -> tuple[Environment, Path]:
    """An environment's file, for the command itself."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    own = environment(aws, "dep-whole")
    state_bucket.bootstrap(AwsAccess(own))
    file = tmp_path / "environment.yaml"
    file.write_text(own.text())
    return own, file


def test_the_command_interrupted_ends_with_130_keeps_its_state_and_goes_on_from_there(
    whole: tuple[Environment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    own, file = whole
    words = ["deploy", str(file), "checkpoints", "--yes", "--out", str(file.parent / "work")]
    begin = "import sys; from penstock.scripts.cli import command; sys.exit(command.main(sys.argv[1:]))"
    log = file.parent / "log"
    with log.open("wb") as said, subprocess.Popen([sys.executable, "-c", begin, *words], cwd=ROOT, stderr=said, stdout=said) as running:
        s3 = AwsAccess(own).client("s3")
        while running.poll() is None and own.spec.buckets.output not in {one["Name"] for one in s3.list_buckets()["Buckets"]}:
            pass
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=120) == 130, log.read_text()
    assert "interrupted stacks applied completely: none. Resources of the others" in log.read_text()
    assert f"continues from there: penstock deploy {file} checkpoints --out {file.parent / 'work'}" in log.read_text()
    parser = argparse.ArgumentParser()
    deploy.add_arguments(parser)
    arguments = parser.parse_args([*words[1:], "-o", "json"])
    assert deploy.run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    (stack,) = document["stacks"]
    created = sum(change["action"] == "create" for change in stack["changes"])
    assert created > 0
    # What Terraform was making when it was interrupted is completed, not replaced.
    assert not [change for change in stack["changes"] if change["action"] in ("replace", "destroy")]
    assert document["applied"][0]["created"] == created
    assert document["outputs"]["checkpoints"]["output_bucket"] == own.spec.buckets.output
