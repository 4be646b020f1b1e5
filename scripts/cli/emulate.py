"""``penstock emulate``: an environment on an emulated AWS on this machine, for Penstock's own verbs and for other tools."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

from penstock.infra.environment import Environment
from penstock.scripts import layout
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.port_argument import port
from penstock.scripts.local.emulated_environment import EmulatedEnvironment, exports
from penstock.scripts.local.working_folder import emptied
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import workplace

DEFAULT_FOLDER = Path(".penstock/emulated")
# How often the emulator and the broker are checked.
_LOOK_S = 1.0
# In the folder: what other tools read, and what is only needed while it runs.
_VARIABLES, _ENVIRONMENT, _WORK = "env", "environment.yaml", "work"

_THEN = "then: aws s3 ls, boto3, Terraform, penstock deploy --plan-only, penstock topics plan"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument("--aws-port", type=port, default=0, metavar="PORT", help="port of the emulated AWS (default: any free port)")
    parser.add_argument("--kafka-port", type=port, default=0, metavar="PORT", help="port of the Kafka broker (default: any free port)")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder for the variables' file (default: {DEFAULT_FOLDER}/ENV)")


def run(arguments: argparse.Namespace) -> NoReturn:
    """Starts the emulated AWS and a broker, applies the environment's AWS stacks, and stays until Ctrl-C or SIGTERM.

    Raises:
        PenstockError: whatever is wrong with the environment, this machine, the plan or the apply.
        KeyboardInterrupt: at its end.
    """
    end_in_order()
    environment = chosen(arguments)
    layout.kafka_classpath()
    steps = Steps()
    folder = (arguments.out or DEFAULT_FOLDER / environment.name).absolute()
    with workplace.held(folder, "emulate"), _handed_over(folder), emptied(folder / _WORK, steps) as work:
        _emulate(environment, arguments, folder, work, steps)


def _emulate(environment: Environment, arguments: argparse.Namespace, folder: Path, work: Path, steps: Steps) -> NoReturn:
    spec = environment.spec
    steps.title(f"environment {environment.name}, account {spec.account}, region {spec.region}, on an emulated AWS")
    if environment.spec.observability.open_search is not None:
        steps.line("left out", "observability.openSearch: emulators do not carry a domain")
    emulated = EmulatedEnvironment(environment, folder=work, aws_port=arguments.aws_port, kafka_port=arguments.kafka_port)
    with ExitStack() as held:
        with steps.at("start", "starting an emulated AWS (moto) and Apache Kafka in KRaft mode") as step:
            held.enter_context(emulated)
            step.said = f"emulated AWS at {emulated.aws.endpoint}, Kafka at {emulated.kafka.address}"
        outputs = emulated.apply(steps)
        _hand_over(emulated, folder)
        for stack, values in outputs.items():
            sys.stdout.write(f"\n{stack}\n" + "".join(f"  {name} = {value}\n" for name, value in values.items()))
        sys.stdout.flush()
        _stay(emulated, folder, steps)


def _hand_over(emulated: EmulatedEnvironment, folder: Path) -> None:
    """Writes what other tools read."""
    file = folder / _ENVIRONMENT
    file.write_text(emulated.environment.text(), encoding="utf-8")
    # Renamed into place: who waits for the file reads all of it.
    unfinished = folder / f"{_VARIABLES}.part"
    unfinished.write_text(exports(emulated.variables(file)), encoding="utf-8")
    unfinished.rename(folder / _VARIABLES)


def _stay(emulated: EmulatedEnvironment, folder: Path, steps: Steps) -> NoReturn:
    spec = emulated.environment.spec
    steps.title("up; Ctrl-C stops it and removes everything")
    steps.line("account", f"{spec.account}, region {spec.region}")
    steps.line("AWS", emulated.aws.endpoint)
    steps.line("Kafka", emulated.kafka.address)
    steps.line("use it", f". {shlex.quote(str(folder / _VARIABLES))}\n{_THEN}")
    steps.line("stop", f"Ctrl-C, or kill {os.getpid()}")
    watched = threading.Event()
    while True:
        watched.wait(_LOOK_S)
        emulated.check()


@contextmanager
def _handed_over(folder: Path) -> Iterator[None]:
    """While it runs, the folder may have what other tools read."""
    try:
        yield
    finally:
        for name in (_VARIABLES, _ENVIRONMENT):
            (folder / name).unlink(missing_ok=True)
