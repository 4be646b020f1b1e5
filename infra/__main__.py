"""The cdktf app: ``python -m penstock.infra``, which ``cdktf`` runs.

It synthesizes the stacks of the environment that PENSTOCK_ENVIRONMENT names, or those of them that PENSTOCK_STACKS names, with commas.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment
from penstock.infra.environment_file import ENVIRONMENT_VARIABLE, LOCAL_ENVIRONMENT, named
from penstock.infra.errors import NodeNotFound
from penstock.infra.plans import EnvironmentPlans, plans
from penstock.sizing.errors import PenstockError

STACKS_VARIABLE = "PENSTOCK_STACKS"
# Set where stacks are synthesized to be destroyed: what can't be deployed any more can still be taken away.
TEARDOWN_VARIABLE = "PENSTOCK_TEARDOWN"
# A file for the errors as JSON, for a program that reads them.
ERRORS_VARIABLE = "PENSTOCK_ERRORS"


def main() -> int:
    """Synthesizes to CDKTF_OUTDIR, by default cdktf.out; what people read goes to stderr.

    Returns:
        The exit code, 0 or an error's.
    """
    try:
        environment = named(path=ENVIRONMENT_VARIABLE, fix=f"export {ENVIRONMENT_VARIABLE}={LOCAL_ENVIRONMENT}")
        planned = plans(environment) if os.environ.get(TEARDOWN_VARIABLE) else deployable_plans(environment)
        if shutil.which("node") is None:
            raise NodeNotFound(path="node", need="Node.js 20 or newer, in PATH", fix="install it, then run ./scripts/setup")
        where = f"at {environment.spec.endpoints.aws}, an emulated AWS" if environment.spec.endpoints else "on AWS"
        heading = f"account {environment.spec.account}  region {environment.spec.region}  environment {environment.name}, {where}"
        print(heading, file=sys.stderr, flush=True)
        _synthesize(environment, planned)
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        if told := os.environ.get(ERRORS_VARIABLE):
            Path(told).write_text(json.dumps([fault.as_json() for fault in error.errors]), encoding="utf-8")
        return error.exit_code
    return 0


def _synthesize(environment: Environment, planned: EnvironmentPlans) -> None:
    # Here, for a wrong environment is told at once, and cdktf takes a second to import.
    from cdktf import App

    from penstock.infra.app import add_stacks

    app = App()
    only = [name for name in os.environ.get(STACKS_VARIABLE, "").split(",") if name]
    add_stacks(app, environment, planned, only)
    app.synth()


if __name__ == "__main__":
    sys.exit(main())
