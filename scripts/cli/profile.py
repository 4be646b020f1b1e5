"""``penstock profile``: measures what a job's slots and CPU seconds process, here or in a deployment, and how fast a machine is."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.infra.environment_file import LOCAL_ENVIRONMENT
from penstock.infra.environment_file import load as load_environment
from penstock.jobs.document import read
from penstock.jobs.spec import SpecFile, job_profile, load
from penstock.jobs.spec.job_profile import JobProfile
from penstock.scripts import layout
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import WrongUsage
from penstock.scripts.installation import app_packages
from penstock.scripts.local.servers.starting import without_server
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.profiling import calibration, machine
from penstock.scripts.profiling.errors import CalibrationMissing
from penstock.scripts.profiling.profile_file import ProfileFile
from penstock.scripts.progress import Steps
from penstock.scripts.render import profile_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.load.measured_job import CalibratedMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGS = ("*.log",)
_SLOTS_PER_CORE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("spec", nargs="?", type=Path, metavar="SPEC", help="job spec (YAML) of the job to measure")
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--input",
        action="append",
        type=_input,
        default=[],
        metavar="[TOPIC=]FILE",
        help="file with a record in each line; repeatable (default: spec.local.input, else records made from the app's schemas)",
    )
    given.add_argument("--from", dest="deployed", metavar="ENV", help="measure the job as it runs in this environment, by its logs")
    given.add_argument("--calibrate", action="store_true", help="only calibrate this machine; with --into for a profile measured elsewhere")
    parser.add_argument("--into", type=Path, metavar="FILE", help="with --calibrate: add this machine to a profile, which scales it")
    parser.add_argument("--slots", type=_slots, metavar="N,...", help="numbers of slots to measure (default: 1 and the machine's cores)")
    parser.add_argument(
        "--seconds", type=_seconds, default=40.0, metavar="S", help="how long to measure each number of slots (default: 40)"
    )
    parser.add_argument("--warm-up", type=_seconds, default=15.0, metavar="S", help="how long each run warms up before that (default: 15)")
    parser.add_argument(
        "--calibration-seconds", type=_seconds, default=calibration.DEFAULT_S, metavar="S", help="how long to calibrate (default: 60)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the profile is written (default: JOB.profile.json)")
    add_environment_option(parser, LOCAL_ENVIRONMENT, more="whose appPath has the app; not with --from")
    add_app_path_argument(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measures, and writes the profile at the end.

    Returns:
        0.

    Raises:
        PenstockError: PROF-001 to PROF-007, DEP-061, DEP-062, and whatever is wrong with the job, its input or this machine.
    """
    _check(arguments)
    end_in_order()
    steps = Steps()
    if arguments.calibrate:
        return _calibrate(arguments, steps)
    spec = load(arguments.spec)
    out = arguments.out or Path(f"{spec.job.metadata.name}.profile.json")
    with ProfileFile(out) as file:
        profile = _deployed(arguments, spec, steps) if arguments.deployed else _measured(arguments, spec, steps)
        file.write(profile)
    _print(profile, arguments.output, out)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if (arguments.spec is None) != arguments.calibrate:
        given = "SPEC with --calibrate, which measures no job" if arguments.calibrate else "no SPEC"
        raise WrongUsage(given=given, need="a SPEC, or --calibrate", fix="penstock profile --help")
    if arguments.into is not None and not arguments.calibrate:
        raise WrongUsage(
            given=f"--into {arguments.into}", need="--into only together with --calibrate", fix="leave it out: --out names the file"
        )
    topics = [topic for topic, _ in arguments.input]
    if len(set(topics)) < len(topics):
        raise WrongUsage(given="--input twice", need="one file for each topic: TOPIC=FILE", fix="name the topics")


def _calibrate(arguments: argparse.Namespace, steps: Steps) -> int:
    """Calibrates this machine, and adds it to a profile if there is one."""
    if arguments.into is None:
        found = calibration.calibrated(steps, arguments.calibration_seconds)
        _print_machine(found, arguments.output)
        return 0
    document = read(arguments.into)
    profile = job_profile.parsed(document)
    if profile.measured.machine is None:
        need = "the calibration of the machine where the job was measured: one of a deployment has none"
        raise document.locate(CalibrationMissing(need=need, fix=f"measure it here: penstock profile {profile.job}.yaml"), ("measured",))
    with ProfileFile(arguments.out or arguments.into) as file:
        found = calibration.calibrated(steps, arguments.calibration_seconds)
        profile = with_machine(profile, found)
        file.write(profile)
    _print(profile, arguments.output, arguments.out or arguments.into)
    return 0


def with_machine(profile: JobProfile, found: CalibratedMachine) -> JobProfile:
    """A profile that is scaled to one more machine; a machine of the same name and cores is replaced.

    Raises:
        CalibrationMissing: PROF-007, it was calibrated with another version of the work.
    """
    own = profile.measured.machine
    if own is None or own.version != found.version:
        given = "none" if own is None else f"version {own.version}"
        need = f"a calibration of version {found.version}, as this release's"
        raise CalibrationMissing(path="measured.machine", given=given, need=need, fix="measure the job again with this release")
    others = [one for one in profile.measured.calibrated if (one.name, one.cores) != (found.name, found.cores)]
    measured = profile.measured.model_copy(update={"calibrated": (*others, found)})
    return profile.model_copy(update={"measured": measured})


def _measured(arguments: argparse.Namespace, spec: SpecFile, steps: Steps) -> JobProfile:
    # Spark and the clients take long to import.
    from penstock.scripts.profiling.local_profile import Effort, LocalProfile, profile_of
    from penstock.scripts.profiling.scratch_spec import refuse_what_has_no_backlog

    raise_all(without_server(spec))
    refuse_what_has_no_backlog(spec)
    layout.kafka_classpath()
    layout.spark_jars()
    cores = machine.cores()
    slots = arguments.slots or tuple(sorted({1, cores}))
    if slots[-1] > _SLOTS_PER_CORE * cores:
        need = f"at most {_SLOTS_PER_CORE * cores} slots, twice the cores of this machine"
        raise WrongUsage(path="--slots", given=str(slots[-1]), need=need, fix="measure fewer, or on a larger machine")
    steps.title(f"profile of {spec.job.metadata.name} on {machine.name()}, {cores} cores")
    packages = app_packages.install(app_packages.checked(spec), steps)
    sys.path.extend(str(folder) for folder in packages.path if str(folder) not in sys.path)
    app_path = tuple(folder.resolve() for folder in folders_of_apps(arguments.app_path, load_environment(arguments.environment)))
    effort = Effort(slots, arguments.seconds, arguments.warm_up)
    with _folder(steps) as folder:
        measured = LocalProfile(spec, app_path, packages, dict(arguments.input), effort, folder, steps).measure()
    calibrated = calibration.calibrated(steps, arguments.calibration_seconds)
    return profile_of(spec, app_path, measured, calibrated, datetime.now(UTC).date().isoformat())


def _deployed(arguments: argparse.Namespace, spec: SpecFile, steps: Steps) -> JobProfile:
    from penstock.scripts.profiling.deployed_profile import measured

    return measured(arguments.deployed, spec, arguments.app_path, steps)


@contextmanager
def _folder(steps: Steps) -> Iterator[Path]:
    """A folder for all that the runs write. After a failure the logs are kept, in a folder of their own."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-profile-"))
    try:
        yield folder
    except PenstockError:
        if logs := [log for log in folder.rglob("*.log") if log.stat().st_size]:
            kept = Path(tempfile.mkdtemp(prefix="penstock-logs-"))
            for log in logs:
                shutil.copy(log, kept / "-".join(log.relative_to(folder).parts))
            steps.line("logs", str(kept))
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _print(profile: JobProfile, output: str, path: Path) -> None:
    if output == "table":
        sys.stdout.write(profile_table.render(profile, path, screen_of(sys.stdout, os.environ)))
    else:
        sys.stdout.write(as_text(profile.model_dump(mode="json", by_alias=True), output))


def _print_machine(found: CalibratedMachine, output: str) -> None:
    if output == "table":
        sys.stdout.write(profile_table.machine_text(found) + "\n")
    else:
        sys.stdout.write(as_text(found.model_dump(mode="json", by_alias=True), output))


def _input(text: str) -> tuple[str, Path]:
    topic, equals, file = text.rpartition("=")
    return (topic, Path(file)) if equals else ("", Path(text))


def _slots(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isdecimal() and 1 <= int(word) <= 1024 for word in words):
        raise argparse.ArgumentTypeError(f"numbers of slots such as 1,2,4, not {text}")
    return tuple(sorted({int(word) for word in words}))


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"seconds above 0 and up to a day, not {text}")
    return value
