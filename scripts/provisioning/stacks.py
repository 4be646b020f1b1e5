"""Synthesis of an environment's stacks by cdktf, in a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.infra.__main__ import REPORT_VARIABLE, REQUEST_VARIABLE
from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.infra.synth_report import SynthReport
from penstock.infra.synth_request import request
from penstock.scripts.errors import SynthFailed
from penstock.scripts.layout import python_path
from penstock.sizing.errors import PenstockError, raise_all, restored

# The first synth on a machine unpacks the bindings (34 MB), which takes 10 s; later ones take 4 s.
SYNTH_LIMIT_S = 300


@dataclass(frozen=True)
class Stack:
    """A synthesized stack.

    Args:
        name: its id.
        folder: folder with its cdk.tf.json.
        dependencies: ids of the stacks that it depends on.
        inputs: outputs of other stacks that it uses, by the other stack's id.
        resource_inputs: other stacks that a resource uses outputs of, by its address; resources without any are omitted.
    """

    name: str
    folder: Path
    dependencies: tuple[str, ...]
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    resource_inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The stack's Terraform configuration."""
        content: dict[str, Any] = json.loads((self.folder / "cdk.tf.json").read_text(encoding="utf-8"))
        return content

    @property
    def on_kubernetes(self) -> bool:
        """Whether it is applied through the Kubernetes API."""
        return "helm" in self.content().get("provider", {})

    def resources(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Arguments of its resources, by address."""
        return [
            (f"{kind}.{name}", arguments) for kind, named in self.content().get("resource", {}).items() for name, arguments in named.items()
        ]


def synthesize(
    environment: Environment,
    folder: Path,
    *,
    planned: EnvironmentPlans | None = None,
    only: Sequence[str] = (),
    base: Mapping[str, str] | None = None,
    limit_s: float = SYNTH_LIMIT_S,
) -> list[Path]:
    """Synthesize the stacks of an environment. State in local files goes to ``folder/state``.

    Args:
        environment: the environment.
        folder: output folder; created if missing.
        planned: plans of its jobs; None: planned here, as for a deploy.
        only: names of the stacks, which are synthesized with their dependencies; empty: all.
        base: environment variables of cdktf; this process's by default.
        limit_s: timeout in seconds.

    Returns:
        The folder of each stack, in order of application.

    Raises:
        PenstockError: an error in the environment or in the plans of its jobs; RUN-006 for any other failure.
    """
    state = folder.absolute() / "state"
    return [stack.folder for stack in synthesized(environment, folder, planned=planned, only=only, state=state, base=base, limit_s=limit_s)]


def synthesized(
    environment: Environment,
    folder: Path,
    *,
    planned: EnvironmentPlans | None = None,
    only: Sequence[str] = (),
    state: Path | None = None,
    base: Mapping[str, str] | None = None,
    limit_s: float = SYNTH_LIMIT_S,
) -> list[Stack]:
    """Synthesize the stacks of an environment.

    Args:
        environment: the environment.
        folder: output folder; created if missing.
        planned: plans of its jobs; None: planned here, as for a deploy.
        only: names of the stacks, which are synthesized with their dependencies; empty: all.
        state: folder for state in local files; None: cdktf's default.
        base: environment variables of cdktf; this process's by default.
        limit_s: timeout in seconds.

    Returns:
        The stacks in order of application.

    Raises:
        PenstockError: an error in the environment or in the plans of its jobs; RUN-006 for any other failure.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    handed_on = folder / "request.json"
    request(environment, planned or deployable_plans(environment), tuple(only)).write(handed_on)
    own = {REQUEST_VARIABLE: str(handed_on), "CDKTF_OUTDIR": str(folder), "PYTHONPATH": python_path()}
    if state is not None:
        own["PENSTOCK_TERRAFORM_STATE"] = str(state)
    answer = folder / "report.json"
    answer.unlink(missing_ok=True)
    synth = _run_app({**(os.environ if base is None else base), **own, REPORT_VARIABLE: str(answer)}, limit_s, answer)
    return [Stack(one.name, folder / one.folder, one.dependencies, one.inputs, one.resource_inputs) for one in synth.stacks]


def _run_app(environment: Mapping[str, str], limit_s: float, answer: Path) -> SynthReport:
    app = subprocess.Popen(
        [sys.executable, "-m", "penstock.infra"],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = app.communicate(timeout=limit_s)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        need = f"completion within {limit_s:g} s"
        raise SynthFailed(
            path="python -m penstock.infra", given="it was still running", need=need, fix="retry on a less busy machine"
        ) from None
    finally:
        _end(app)
    if app.returncode != 0:
        # An error in the environment is raised as such, not as a failed synth.
        raise_all(_errors(answer))
        given = "\n".join(f"       {line}" for line in said.splitlines()[-20:])
        given = f"exit code {app.returncode}:\n{given}"
        raise SynthFailed(path="python -m penstock.infra", given=given, need="stacks", fix="correct the reported error")
    return _read(answer)


def _read(answer: Path) -> SynthReport:
    return SynthReport.model_validate_json(answer.read_text(encoding="utf-8"))


def _errors(answer: Path) -> list[PenstockError]:
    errors = [restored(document) for document in _read(answer).errors] if answer.is_file() else []
    return [error for error in errors if error is not None]


def _end(app: subprocess.Popen[bytes]) -> None:
    """Stop the app and its Node.js, if they are still running."""
    if app.poll() is None:
        os.killpg(app.pid, signal.SIGKILL)
        app.communicate()
