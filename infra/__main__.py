"""The cdktf app: ``python -m infra``, which ``cdktf`` runs.

It synthesizes every stack of the environment that PENSTOCK_ENVIRONMENT names.
"""

from __future__ import annotations

import os
import shutil
import sys

from infra.environment import Environment, load, names
from infra.errors import NodeNotFound, NoEnvironment
from sizing.errors import PenstockError

ENVIRONMENT_VARIABLE = "PENSTOCK_ENVIRONMENT"


def main() -> int:
    """Synthesizes to CDKTF_OUTDIR, by default cdktf.out; what people read goes to stderr.

    Returns:
        The exit code, 0 or an error's.
    """
    try:
        environment = _environment()
        if shutil.which("node") is None:
            raise NodeNotFound(path="node", need="Node.js 20 or newer, in PATH", fix="install it, then run ./scripts/setup")
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    where = f"at {environment.spec.endpoints.aws}, an emulated AWS" if environment.spec.endpoints else "on AWS"
    print(f"account {environment.spec.account}  region {environment.spec.region}  environment {environment.name}, {where}", file=sys.stderr)
    _synthesize(environment)
    return 0


def _environment() -> Environment:
    name = os.environ.get(ENVIRONMENT_VARIABLE)
    if not name:
        need = f"{ENVIRONMENT_VARIABLE}: one of {', '.join(names())}, or the path of an environment file"
        raise NoEnvironment(path=ENVIRONMENT_VARIABLE, need=need, fix=f"export {ENVIRONMENT_VARIABLE}=local")
    return load(name)


def _synthesize(environment: Environment) -> None:
    # jsii fills the screen about each Node.js past its end of life; 20 is one that cdktf 0.21 was made for.
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    # Here, for a wrong environment is told at once, and cdktf takes a second to import.
    from cdktf import App

    from infra.stacks.checkpoints import CheckpointsStack

    app = App()
    CheckpointsStack(app, environment)
    app.synth()


if __name__ == "__main__":
    sys.exit(main())
