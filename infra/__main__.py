"""The cdktf app: ``python -m penstock.infra``, which ``cdktf`` runs.

Synthesizes the stacks of the environment in PENSTOCK_ENVIRONMENT, or only those in PENSTOCK_STACKS (comma-separated). A Penstock command
that
has already planned the environment passes it in the file PENSTOCK_SYNTH_REQUEST.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment_file import ENVIRONMENT_VARIABLE, LOCAL_ENVIRONMENT, named
from penstock.infra.errors import NodeNotFound
from penstock.infra.provider_lock import write
from penstock.infra.synth_report import SynthReport, failure, report
from penstock.infra.synth_request import SynthRequest, read, request
from penstock.sizing.errors import PenstockError

STACKS_VARIABLE = "PENSTOCK_STACKS"
REQUEST_VARIABLE = "PENSTOCK_SYNTH_REQUEST"
# Output file for a `SynthReport`, read by the calling program.
REPORT_VARIABLE = "PENSTOCK_SYNTH_REPORT"


def main() -> int:
    """Synthesizes to CDKTF_OUTDIR, by default cdktf.out. Messages for people go to stderr.

    Returns:
        The exit code: 0, or that of an error.
    """
    try:
        asked = _asked()
        environment = asked.environment
        if shutil.which("node") is None:
            raise NodeNotFound(path="node", need="Node.js 20 or later in PATH", fix="install it, then run ./scripts/setup")
        where = f"at {environment.spec.endpoints.aws}, an emulated AWS" if environment.spec.endpoints else "on AWS"
        heading = f"account {environment.spec.account}  region {environment.spec.region}  environment {environment.name}, {where}"
        print(heading, file=sys.stderr, flush=True)
        folder = _synthesize(asked)
        _answer(lambda: report(folder))
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        _answer(partial(failure, error))
        return error.exit_code
    return 0


def _asked() -> SynthRequest:
    """The request of the calling command; without one, the environment is planned here."""
    handed_on = os.environ.get(REQUEST_VARIABLE)
    if handed_on:
        return read(Path(handed_on))
    environment = named(path=ENVIRONMENT_VARIABLE, fix=f"export {ENVIRONMENT_VARIABLE}={LOCAL_ENVIRONMENT}")
    only = [name for name in os.environ.get(STACKS_VARIABLE, "").split(",") if name]
    return request(environment, deployable_plans(environment), tuple(only))


def _answer(make: Callable[[], SynthReport]) -> None:
    """Writes the report if the caller requested one."""
    file = os.environ.get(REPORT_VARIABLE)
    if file:
        Path(file).write_text(make().model_dump_json(), encoding="utf-8")


def _synthesize(asked: SynthRequest) -> Path:
    """Synthesizes and reports the output folder."""
    # Imported here because cdktf takes a second to import, and an invalid environment should be reported at once.
    from cdktf import App

    from penstock.infra.app import add_stacks

    app = App()
    add_stacks(app, asked.environment, asked.plans, asked.stacks)
    app.synth()
    for stack in report(Path(app.outdir)).stacks:
        write(Path(app.outdir) / stack.folder, Path.cwd())
    return Path(app.outdir)


if __name__ == "__main__":
    sys.exit(main())
