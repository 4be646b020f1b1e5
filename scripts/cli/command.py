"""The ``penstock`` command: finds the verb, runs it, and turns failures into an error with an exit code.

A verb is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. It is only imported when it is called, so `penstock
size` needs neither Spark nor cdktf nor boto3 and starts quickly.

Exit codes: 0 done, 1 a check ran and failed, 2 a bad spec or usage, 3 infeasible, 4 a tool or credential is missing, 5 the run or an
outside system failed, 130 interrupted; and 141 if the reader of the output has gone, as a shell reports it. A bug of Penstock itself
shows its traceback and exits with 70, so that it is not taken for a failed check.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from penstock.scripts.cli.output import as_text, errors_document, wants_json
from penstock.scripts.errors import WrongUsage, package_missing
from penstock.scripts.process import interrupts
from penstock.sizing.errors import PenstockError

_OWN = {"penstock"}
INTERRUPTED = 130
NOBODY_READS = 141
# Source: EX_SOFTWARE of BSD's sysexits.h.
OUR_FAULT = 70
# The most severe first: an invalid document must be fixed before other findings matter.
GRAVEST_FIRST = (2, 5, 4, 3, 1)


class Verb(NamedTuple):
    """A verb of the command.

    Args:
        module: the module that does it.
        help: what it does, in a line.
        extra: of the distribution, with the packages that it needs; none where those of the distribution itself are enough.
    """

    module: str
    help: str
    extra: str = ""


VERBS = {
    "init": Verb("penstock.scripts.cli.init", "make a repository of a team, with an app, environments, tests and pipelines"),
    "setup": Verb("penstock.scripts.cli.setup", "download the jars of Spark and Kafka and cdktf-cli to the user's cache"),
    "size": Verb("penstock.scripts.cli.size", "plan jobs: executors, pods, Spark settings, topics, nodes, cost"),
    "profile": Verb("penstock.scripts.cli.profile", "measure what a slot of a job processes, here or in a deployment, for size", "local"),
    "check": Verb("penstock.scripts.cli.check", "build apps against their specs and analyze their queries, without running them", "local"),
    "show": Verb("penstock.scripts.cli.show", "show a job's queries: sources, operators with state, sinks", "local"),
    "place": Verb("penstock.scripts.cli.place", "simulate the nodes that Karpenter creates for given pods"),
    "cost": Verb("penstock.scripts.cli.cost", "estimate what a job costs, or compare two specs or environments"),
    "lint": Verb("penstock.scripts.cli.lint", "find valid but risky configuration in specs and manifests"),
    "review": Verb("penstock.scripts.cli.review", "show what a change of the repository means for each job of an environment"),
    "catalog": Verb("penstock.scripts.cli.catalog", "show instance types and prices, or fetch a region's from AWS"),
    "schema": Verb("penstock.scripts.cli.schema", "print the JSON Schema of the job spec, or its URL, for editors"),
    "report": Verb("penstock.scripts.cli.report", "write a plan as a single HTML page: nodes, cost, throughput, recovery"),
    "packages": Verb("penstock.scripts.cli.packages", "check the locks of apps' own packages, and prepare them for the image"),
    "image": Verb("penstock.scripts.cli.image", "build the jobs' image with a team's apps and their packages"),
    "scan": Verb("penstock.scripts.cli.scan", "check an environment's resources against security rules, offline", "scan"),
    "doctor": Verb("penstock.scripts.cli.doctor", "report missing prerequisites on this machine and on AWS", "deploy"),
    "bootstrap": Verb("penstock.scripts.cli.bootstrap", "create the S3 bucket for an environment's Terraform state", "deploy"),
    "synth": Verb("penstock.scripts.cli.synth", "synthesize an environment's stacks for Terraform", "infra"),
    "rehearse": Verb("penstock.scripts.cli.rehearse", "apply, plan again and destroy an environment's AWS stacks on emulators", "local"),
    "deploy": Verb("penstock.scripts.cli.deploy", "plan an environment's stacks and apply them in order", "deploy"),
    "topics": Verb("penstock.scripts.cli.topics", "plan and apply the topics of an environment's jobs", "deploy"),
    "status": Verb("penstock.scripts.cli.status", "show what an environment's jobs do, and why one does not", "deploy"),
    "inspect": Verb("penstock.scripts.cli.inspect", "show what a job's checkpoint has: offsets, watermarks, state, files", "deploy"),
    "logs": Verb("penstock.scripts.cli.logs", "show the log of a job's driver or of its executors", "deploy"),
    "stop": Verb("penstock.scripts.cli.stop", "stop a job at the end of its micro-batch, and keep its state", "deploy"),
    "resume": Verb("penstock.scripts.cli.resume", "run a job that is stopped or has failed", "deploy"),
    "move": Verb("penstock.scripts.cli.move", "move a job's driver to another node at the end of its micro-batch", "deploy"),
    "rewind": Verb("penstock.scripts.cli.rewind", "have a job read its topics again from a time, after showing what that means", "deploy"),
    "redeploy": Verb("penstock.scripts.cli.redeploy", "have a job begin anew without its state, after showing what that means", "deploy"),
    "savepoint": Verb("penstock.scripts.cli.savepoint", "take savepoints of a job, and have a job start from one", "deploy"),
    "upgrade": Verb("penstock.scripts.cli.upgrade", "check whether changed jobs can go on with their state", "deploy"),
    "destroy": Verb("penstock.scripts.cli.destroy", "stop an environment's jobs and tear down its stacks in order", "deploy"),
    "emulate": Verb("penstock.scripts.cli.emulate", "keep an environment up on an emulated AWS, for Penstock and other tools", "local"),
    "feed": Verb("penstock.scripts.cli.feed", "write generated events to the topics of a job at a steady rate, until Ctrl-C", "local"),
    "sql": Verb("penstock.scripts.cli.sql", "show the rows of an SQL query over the topics that jobs read, as they come", "local"),
    "run": Verb("penstock.scripts.cli.run", "run a job on this machine until it is stopped, and restart it after failures", "local"),
    "up": Verb("penstock.scripts.cli.up", "run jobs end to end locally: emulated AWS, a real Kafka broker, Spark", "local"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: the arguments after ``penstock``; by default those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _write_any_text()
    try:
        code = _guarded(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # Flushing the rest of the buffer would fail again when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return code


def exit_code(error: PenstockError) -> int:
    """The exit code of the most severe fault in an error."""
    codes = {fault.exit_code for fault in error.errors}
    return next(code for code in GRAVEST_FIRST if code in codes)


def _guarded(words: list[str]) -> int:
    try:
        with interrupts.heard():
            return _run(words)
    except PenstockError as error:
        if wants_json(words):
            sys.stdout.write(as_text(errors_document(error), "json"))
        else:
            sys.stdout.flush()
            print(error.render(), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as end:
        # argparse exits this way for --help and --version.
        return end.code if isinstance(end.code, int) else 0
    except BrokenPipeError:
        raise
    except Exception as error:
        if _is_interrupt(error):
            return _interrupted()
        traceback.print_exc()
        return OUR_FAULT


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return INTERRUPTED


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception stands for Ctrl-C: pydantic turns what is raised while it serializes into an error of its own."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _is_interrupt(error.__cause__))


def _run(words: list[str]) -> int:
    if not words or words[0].startswith("-"):
        _top_parser().parse_args(words)
        raise WrongUsage(given="no command", need=f"one of {', '.join(VERBS)}", fix="penstock --help")
    name = words[0]
    if name not in VERBS:
        close = difflib.get_close_matches(name, VERBS, n=1)
        fix = f"did you mean {close[0]}?" if close else "penstock --help"
        raise WrongUsage(given=f"command {name}", need=f"one of {', '.join(VERBS)}", fix=fix)
    module = _verb(name)
    parser = _Parser(prog=f"penstock {name}", description=_sentence(VERBS[name].help), allow_abbrev=False)
    module.add_arguments(parser)
    # The words as they are, for a verb that starts itself again.
    code: int = module.run(parser.parse_args(words[1:], argparse.Namespace(words=words)))
    return code


def _verb(name: str) -> Any:
    """The module of a verb. A verb may need packages that others do not: `size` needs the fewest."""
    try:
        return importlib.import_module(VERBS[name].module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in _OWN:
            raise
        raise package_missing(f"penstock {name}", error, VERBS[name].extra) from None


def _top_parser() -> argparse.ArgumentParser:
    width = max(len(name) for name in VERBS)
    verbs = "\n".join(f"  {name:<{width}}  {verb.help}" for name, verb in VERBS.items())
    parser = _Parser(
        prog="penstock",
        usage="penstock VERB [OPTION]...",
        description="Sizes, provisions, runs and verifies PySpark Structured Streaming jobs on AWS.",
        epilog=f"verbs:\n{verbs}\n\nUse 'penstock VERB --help' for more about a verb.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUsage(given=message, need=" ".join(self.format_usage().removeprefix("usage: ").split()), fix=f"{self.prog} --help")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"penstock {_version()}")
        parser.exit()


def _version() -> str:
    import tomllib  # these two only for --version: they cost some 30 ms
    from importlib import metadata

    try:
        return metadata.version("penstock-kit")
    except metadata.PackageNotFoundError:
        # Run from a checkout, as the quickstart does.
        project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
        return str(project["project"]["version"])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _write_any_text() -> None:
    """A file name that the terminal cannot display must not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
