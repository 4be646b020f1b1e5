"""The cdktf app: ``python -m penstock.infra``, which ``cdktf`` runs.

It synthesizes the stacks of the environment that PENSTOCK_ENVIRONMENT names, or those of them that PENSTOCK_STACKS names, with commas. A
command of Penstock that has planned the environment hands it on instead, as the file that PENSTOCK_SYNTH_REQUEST names.
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
from penstock.infra.synth_report import SynthReport, failure, report
from penstock.infra.synth_request import SynthRequest, read, request
from penstock.sizing.errors import PenstockError

STACKS_VARIABLE = "PENSTOCK_STACKS"
REQUEST_VARIABLE = "PENSTOCK_SYNTH_REQUEST"
# A file for the answer, a `SynthReport`, for a program that reads it.
REPORT_VARIABLE = "PENSTOCK_SYNTH_REPORT"


def main() -> int:
    """Synthesizes to CDKTF_OUTDIR, by default cdktf.out; what people read goes to stderr.

    Returns:
        The exit code, 0 or an error's.
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
    """What a command hands on; without one the environment is planned here."""
    handed_on = os.environ.get(REQUEST_VARIABLE)
    if handed_on:
        return read(Path(handed_on))
    environment = named(path=ENVIRONMENT_VARIABLE, fix=f"export {ENVIRONMENT_VARIABLE}={LOCAL_ENVIRONMENT}")
    only = [name for name in os.environ.get(STACKS_VARIABLE, "").split(",") if name]
    return request(environment, deployable_plans(environment), tuple(only))


def _answer(make: Callable[[], SynthReport]) -> None:
    """Writes the answer where a program asks for one."""
    file = os.environ.get(REPORT_VARIABLE)
    if file:
        Path(file).write_text(make().model_dump_json(), encoding="utf-8")


def _synthesize(asked: SynthRequest) -> Path:
    """Synthesizes, and says to which folder."""
    # Here, for a wrong environment is told at once, and cdktf takes a second to import.
    from cdktf import App

    from penstock.infra.app import add_stacks

    app = App()
    add_stacks(app, asked.environment, asked.plans, asked.stacks)
    app.synth()
    return Path(app.outdir)


if __name__ == "__main__":
    sys.exit(main())
