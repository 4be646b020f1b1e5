"""The cdktf app: ``python -m penstock.infra``, which ``cdktf`` runs.

It synthesizes the stacks of the environment that PENSTOCK_ENVIRONMENT names, or those of them that PENSTOCK_STACKS names, with commas.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import sys
from pathlib import Path

from penstock.infra.deployable import refuse_undeployable
from penstock.infra.environment import Environment, file_of, load, names
from penstock.infra.errors import NodeNotFound, NoEnvironment
from penstock.infra.plans import EnvironmentPlans, plans
from penstock.jobs.document import read
from penstock.sizing.errors import PenstockError

ENVIRONMENT_VARIABLE = "PENSTOCK_ENVIRONMENT"
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
        file = _file()
        environment = load(file)
        planned = plans(environment)
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        if not os.environ.get(TEARDOWN_VARIABLE):
            refuse_undeployable(environment, planned.cluster, today=today, document=read(file))
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


def _file() -> Path:
    name = os.environ.get(ENVIRONMENT_VARIABLE)
    if not name:
        need = f"{ENVIRONMENT_VARIABLE}: one of {', '.join(names())}, or the path of an environment file"
        raise NoEnvironment(path=ENVIRONMENT_VARIABLE, need=need, fix=f"export {ENVIRONMENT_VARIABLE}=local")
    return file_of(name)


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
