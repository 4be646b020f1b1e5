"""The stacks of an environment, synthesized by cdktf in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.environment import Environment
from scripts.errors import SynthFailed

ROOT = Path(__file__).resolve().parent.parent
# The first synth on a machine unpacks the bindings, 34 MB, which takes 10 s; later ones take 4 s.
SYNTH_LIMIT_S = 300


def synthesize(
    environment: Environment, folder: Path, *, base: Mapping[str, str] | None = None, limit_s: float = SYNTH_LIMIT_S
) -> list[Path]:
    """Synthesizes all the stacks of an environment. Their state goes to ``folder/state``.

    Args:
        environment: the environment.
        folder: where the stacks go; made if it is not there.
        base: the variables that cdktf runs with; this process's by default.
        limit_s: how long it may take.

    Returns:
        A folder a stack, in the order in which they are to be applied.

    Raises:
        SynthFailed: RUN-006.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "environment.yaml"
    file.write_text(environment.text(), encoding="utf-8")
    own = {"PENSTOCK_ENVIRONMENT": str(file), "CDKTF_OUTDIR": str(folder), "PENSTOCK_TERRAFORM_STATE": str(folder / "state")}
    _run_app({**(os.environ if base is None else base), **own, "PYTHONPATH": str(ROOT)}, limit_s)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return [folder / stack["workingDirectory"] for stack in _in_order(manifest["stacks"])]


def _run_app(environment: Mapping[str, str], limit_s: float) -> None:
    app = subprocess.Popen(
        [sys.executable, "-m", "infra"],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = app.communicate(timeout=limit_s)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        need = f"an end within {limit_s:g} s"
        raise SynthFailed(path="python -m infra", given="it still ran", need=need, fix="run it again on a quieter machine") from None
    finally:
        _end(app)
    if app.returncode != 0:
        given = "\n".join(f"       {line}" for line in said.splitlines()[-20:])
        raise SynthFailed(path="python -m infra", given=f"exit code {app.returncode}:\n{given}", need="stacks", fix="mend what it says")


def _end(app: subprocess.Popen[bytes]) -> None:
    """Ends the app and its Node.js, where they still run."""
    if app.poll() is None:
        os.killpg(app.pid, signal.SIGKILL)
        app.communicate()


def _in_order(stacks: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The stacks, each after those that it depends on."""
    ordered: dict[str, Mapping[str, Any]] = {}

    def add(name: str) -> None:
        for dependency in stacks[name]["dependencies"]:
            add(dependency)
        ordered.setdefault(name, stacks[name])

    for name in stacks:
        add(name)
    return list(ordered.values())
