"""``python -m penstock.jobs.session.job_process JOB.json --folder FOLDER --events FILE``: the driver of a session's job.

Like `penstock.jobs.driver.runtime`, whose events and exit codes it has, but for Spark: that of the session, whose gateway is in the
environment. Each event has the name of the job as ``job``.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.configuration.session import SessionJob
from penstock.jobs.driver.ending import Ending
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.runtime import Driver, EventWriter, stop_requests
from penstock.jobs.session.shared_spark import SharedSpark
from penstock.jobs.storage.app_archive import unpack
from penstock.sizing.errors import PenstockError

_STDIN = 0


def main(arguments: list[str]) -> int:
    """Runs the job of a file."""
    parser = argparse.ArgumentParser(prog="python -m penstock.jobs.session.job_process")
    parser.add_argument("name", help="of the job")
    parser.add_argument("job", type=Path, help="a file with the session's job")
    parser.add_argument("--folder", type=Path, required=True, help="an existing folder for the job's files")
    parser.add_argument("--events", type=Path, required=True, help="a file or pipe for the events")
    parsed = parser.parse_args(arguments)
    threading.Thread(target=_end_with_driver, name="penstock-driver-ended", daemon=True).start()
    job = SessionJob.model_validate_json(parsed.job.read_text(encoding="utf-8"))
    with parsed.events.open("a", encoding="utf-8") as out:
        return _run(parsed.name, job, parsed.folder, _named(EventWriter(out), parsed.name))


def _end_with_driver() -> None:
    """Ends this process once the session's driver has, which holds the other end of its standard input. What it was about to write does not
    count: the job's next process has another token.
    """
    # Not by sys.stdin, whose lock would keep the interpreter from ending by itself.
    while os.read(_STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _run(name: str, job: SessionJob, folder: Path, emit: Emit) -> int:
    stop = stop_requests()
    try:
        configuration, app = _prepared(name, job, folder)
    except PenstockError as error:
        return Ending(emit, SharedSpark(name)).failed(error)
    spark = SharedSpark(name, app, configuration.app_path)
    ending = Ending(emit, spark)
    try:
        Driver(configuration, stop, emit, ending.abort, spark).run()
    except Exception as error:
        return ending.failed(error)
    return ending.stopped()


def _prepared(name: str, job: SessionJob, folder: Path) -> tuple[RuntimeConfiguration, Path | None]:
    """The configuration with the job's files and its app in a folder, and the archive of the app."""
    for file, text in job.files.items():
        (folder / file).write_text(text, encoding="utf-8")
    changed: dict[str, object] = {"spec": str(folder / job.configuration.spec)}
    archive = None
    if job.app is not None:
        modules = folder / "app"
        # By its job and its content: Spark has one folder for the files of all jobs, in which two may not have the same name, and workers
        # keep the modules that they have imported from one.
        archive = folder / f"{name}-{job.app.sha256[:16]}.zip"
        archive.write_bytes(unpack(job.app, modules))
        changed["app_path"] = (str(modules), *job.configuration.app_path)
    return job.configuration.model_copy(update=changed), archive


def _named(emit: Callable[[str, Mapping[str, object]], None], job: str) -> Emit:
    return lambda event, detail: emit(event, {"job": job, **detail})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
