"""The check before an upgrade: ``python -m penstock.jobs.driver.upgrade_check CONFIGURATION.json``.

Runs in the image and with the configuration that are about to be deployed, while the job's driver of before runs on, and decides whether
the new driver could go on with what the job has stored, as that driver itself would decide it. The job's lease is not taken, nothing is
written to S3, and neither brokers nor databases are asked. Spark analyzes the app's queries, in one local JVM, only if there is state that
they must fit.

Exit code 0: the upgrade may go on; 1: the new driver would not start, and so the job must not be upgraded; 5: the check itself has failed,
and may be tried again. The error is written to the log and as the termination message of the container.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.configuration.session import AppArchive
from penstock.jobs.driver import app, rewind
from penstock.jobs.driver import session as spark_session
from penstock.jobs.driver.bounded import refuse_after_the_end
from penstock.jobs.driver.check import queries_on
from penstock.jobs.driver.errors import UpgradeNotChecked
from penstock.jobs.driver.fingerprint import fingerprint
from penstock.jobs.driver.generations import refuse_another_checkpoint
from penstock.jobs.driver.going_on import begun, refuse_a_socket
from penstock.jobs.driver.initial_offsets import as_read_on
from penstock.jobs.driver.pod import leave_message
from penstock.jobs.driver.repartitionable_state import refuse_unsupported
from penstock.jobs.savepoints.before_upgrade import is_due, savepoint_name
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.starting import refuse_another_job, refuse_lost_queries
from penstock.jobs.spec import JobSpec, SpecFile
from penstock.jobs.spec.overriding import load_overridden
from penstock.jobs.spec.stage_settings import SHUFFLE_PARTITIONS, stages_conf
from penstock.jobs.storage.app_archive import unpack
from penstock.jobs.storage.checkpoint import FINISHED, Checkpoint
from penstock.jobs.storage.continuation import Continuation, InitialSavepoint, SavepointStart
from penstock.jobs.storage.errors import BucketUnreachable, ConditionalWriteFailed
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.no_checkpoint import NoCheckpoint
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.rewind_request import RewindRequestFile
from penstock.jobs.storage.stored_state import StoredState
from penstock.jobs.stream.task_errors import first_line
from penstock.sizing.errors import CheckFailed, PenstockError

# Says nothing of the upgrade.
_OUTAGES = (BucketUnreachable, ConditionalWriteFailed, UpgradeNotChecked)

# What the queries keep that would go on with a checkpoint, by their names.
Analysis = Callable[[RuntimeConfiguration, SpecFile, Checkpoint], dict[str, QueryRecord]]


def main(arguments: list[str]) -> int:
    """Checks the job of a configuration file. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m penstock.jobs.driver.upgrade_check")
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--app", type=Path, help="file that says where the app's archive is, in place of the app in the image")
    given = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            print(check(_with_app(RuntimeConfiguration.read(given.configuration), given.app, Path(folder))), flush=True)
    except Exception as failure:
        return _failed(failure)
    return 0


def _with_app(configuration: RuntimeConfiguration, app: Path | None, folder: Path) -> RuntimeConfiguration:
    """The configuration with an archive's modules before those of the image."""
    if app is None:
        return configuration
    unpack(AppArchive.model_validate_json(app.read_text(encoding="utf-8")), folder)
    return configuration.model_copy(update={"app_path": (str(folder), *configuration.app_path)})


def check(configuration: RuntimeConfiguration, analyze: Analysis | None = None) -> str:
    """Decides whether a job can be upgraded. Nothing is written.

    Args:
        configuration: of the driver that is about to be deployed.
        analyze: finds out what its queries keep; by default with a Spark of its own.

    Returns:
        Why the upgrade may go on, for people.

    Raises:
        PenstockError: what the new driver would end with: JOB-008, JOB-021, JOB-022, JOB-086, JOB-093 to JOB-099, JOB-101, JOB-105,
            JOB-109, JOB-112, and those of an app that can't be built; JOB-009 if the bucket is out of reach.
    """
    spec = load_overridden(Path(configuration.spec), configuration.parallelism)
    job, folder = spec.job.spec, JobFolder(configuration.job_folder)
    request = RewindRequestFile(folder.uri).read()
    decided = folder.continuation(fingerprint(spec, configuration), job.upgrade_mode, job.rewind_to, request, InitialSavepoint.of(job))
    if not decided.begins:
        return f"nothing has changed: the driver goes on as generation {decided.number}"
    if decided.rewinds_to is not None:
        rewind.refuse_what_has_no_past(job, decided.rewinds_to)
    if decided.start is not None:
        return _from_savepoint(configuration, spec, decided.start, analyze or _analyzed)
    return _from_checkpoint(configuration, spec, folder, decided, analyze or _analyzed)


def _from_checkpoint(
    configuration: RuntimeConfiguration, spec: SpecFile, folder: JobFolder, decided: Continuation, analyze: Analysis
) -> str:
    """As `check`, of a job that goes on with a checkpoint."""
    job, checkpoint = spec.job.spec, folder.checkpoint(decided.checkpoint)
    queries = begun(checkpoint)
    if not queries:
        return f"no micro-batch has been committed to {checkpoint.uri}: there is no state"
    if job.bounded:
        # The run that has finished keeps its result; one of an environment's next deploys must not fail for it.
        if checkpoint.get(FINISHED) is not None:
            return f"{checkpoint.uri} is of a bounded run that has finished"
    else:
        for name in queries:
            refuse_after_the_end(checkpoint.of_query(name).last_record(), checkpoint.of_query(name))
    refuse_a_socket(job, checkpoint)
    saved = _saved_first(job, decided)
    if job.checkpoint.state_schema == "any":
        return f"checkpoint.stateSchema is any: Spark decides when the driver starts{saved}"
    now = analyze(configuration, spec, checkpoint)
    before = {name: query for name, query in now.items() if name in queries}
    refuse_another_checkpoint(folder.last_of(decided.checkpoint), before)
    if saved and not job.bounded:
        states = {name: StoredState.of(checkpoint.of_query(name)) for name, query in before.items() if query.operators}
        saved += _repartitioned(configuration, spec, checkpoint.uri, states)
    return f"generation {decided.number} can go on with {checkpoint.uri}{saved}"


def _saved_first(job: JobSpec, decided: Continuation) -> str:
    name = savepoint_name(decided.before.number if decided.before is not None else None)
    return f"; its driver takes savepoint {name} first" if is_due(job.upgrade_mode, decided) else ""


def _from_savepoint(configuration: RuntimeConfiguration, spec: SpecFile, start: SavepointStart, analyze: Analysis) -> str:
    """As `check`, of a job that is to start from a savepoint."""
    folder = SavepointFolder(start.uri)
    savepoint = folder.manifest()
    refuse_another_job(savepoint, start.uri, spec.job.metadata.name, start)
    savepoint = as_read_on(start.offsets, folder, savepoint, spec)
    if spec.job.spec.checkpoint.state_schema == "any":
        return "checkpoint.stateSchema is any: Spark decides when the driver starts"
    saved = NoCheckpoint(start.uri, further=[name for name in savepoint.queries if name])
    now = analyze(configuration, spec, saved)
    refuse_lost_queries(savepoint, start, list(now))
    before = {name: query for name, query in now.items() if name in savepoint.queries}
    refuse_another_checkpoint(savepoint.generation, before)
    states = {name: folder.state(savepoint, name) for name, query in before.items() if query.operators}
    return f"the job can start from {start.uri}{_repartitioned(configuration, spec, start.uri, states)}"


def _repartitioned(configuration: RuntimeConfiguration, spec: SpecFile, path: str, states: Mapping[str, StoredState]) -> str:
    """What happens to state that has another parallelism than the spec; empty if none has.

    Raises:
        StateNotRepartitioned: JOB-109.
    """
    number = {**stages_conf(spec.job.spec.stages), **configuration.spark_conf}.get(SHUFFLE_PARTITIONS)
    asked = int(number) if number is not None else None
    other = [one for one in states.values() if asked is not None and one.settings.shuffle_partitions not in (None, asked)]
    for one in other:
        refuse_unsupported(path, one, asked or 0)
    return f"; its state is repartitioned to {asked} shuffle partitions" if other else ""


def _analyzed(configuration: RuntimeConfiguration, spec: SpecFile, checkpoint: Checkpoint) -> dict[str, QueryRecord]:
    app.importable((*configuration.app_path, *configuration.package_path))
    conf = {**spark_session.state_conf(spec.job.spec.state), **configuration.spark_conf}
    session = spark_session.build(f"{spec.job.metadata.name}-upgrade-check", configuration.master, conf)
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return queries_on(checkpoint, spec, [Path(path) for path in configuration.app_path], session, Path(folder))
    finally:
        session.stop()


def _failed(failure: Exception) -> int:
    """Reports why the upgrade does not go on. Returns the exit code."""
    error = failure if isinstance(failure, PenstockError) else _unexpected(failure)
    print(error.render(), file=sys.stderr, flush=True)
    leave_message(error)
    undecided = any(isinstance(one, _OUTAGES) for one in error.errors)
    return UpgradeNotChecked.exit_code if undecided else CheckFailed.exit_code


def _unexpected(failure: Exception) -> UpgradeNotChecked:
    fix = "check the log of the check's pod; checkpoint.stateSchema: any deploys without an analysis of the app"
    return UpgradeNotChecked(path="the check of the upgrade", given=f"{type(failure).__name__}: {first_line(failure)}", fix=fix)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
