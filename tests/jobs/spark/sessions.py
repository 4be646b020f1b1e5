"""Runs a session's driver in a test: its own process, with a JVM of its own, as it runs in a pod."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE, RuntimeConfiguration
from penstock.jobs.configuration.session import SPEC, AppArchive, SessionConfiguration, SessionJob
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import driver_conf
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.kafka_topics import Feeder
from tests.jobs.spark.executors.held import until
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_LIMIT_S = 100


def without_spark(kafka: KafkaBroker, s3: S3Client, folder: Path) -> Surroundings:
    """Surroundings of jobs whose session has a Spark of its own."""
    feeder = Feeder(kafka.address)
    return Surroundings(session=None, brokers=kafka.address, s3=s3, folder=folder, feeder=feeder)  # type: ignore[arg-type]


def archived(s3: S3Client, job: str, **modules: str) -> AppArchive:
    """An app in the bucket of the checkpoints: name of a module -> its text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in modules.items():
            archive.writestr(f"{name}.py", text)
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    s3.put_object(Bucket=CHECKPOINTS, Key=f"{job}/apps/{digest}.zip", Body=content)
    return AppArchive(uri=f"s3a://{CHECKPOINTS}/{job}/apps/{digest}.zip", sha256=digest)


def session_job(job: TestedJob, app: AppArchive, **spark_conf: str) -> SessionJob:
    """A job of a session, as it is now."""
    configuration = RuntimeConfiguration(
        spec=SPEC,
        master="local[2]",
        brokers=job.around.brokers,
        job_folder=f"s3a://{CHECKPOINTS}/{job.name}",
        output_bucket=OUTPUT,
        lease_s=job.lease_s,
        progress_timeout_s=job.progress_timeout_s,
        spark_conf={"spark.sql.shuffle.partitions": "2", **spark_conf},
    )
    return SessionJob(configuration=configuration, files={SPEC: job.spec.read_text(encoding="utf-8")}, app=app)


@dataclass
class RunningSession:
    """A running session and its events."""

    folder: Path
    configuration: SessionConfiguration
    process: subprocess.Popen[bytes]
    heard: list[dict[str, Any]] = field(default_factory=list)
    _more: threading.Condition = field(default_factory=threading.Condition)
    # Events before the last change: a failure before it is that of another app.
    _before: int = 0
    # (Event, job) -> events that `wait` has looked at.
    _given: dict[tuple[str, str | None], int] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """Its configuration."""
        return self.folder / "session.json"

    @property
    def log(self) -> str:
        """What its processes have written to standard error."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    @property
    def ready(self) -> bool:
        """Whether its pod would be."""
        return (self.folder / "ready").exists()

    def change(self, jobs: Mapping[str, SessionJob]) -> None:
        """Has the session run these jobs."""
        self.configuration = self.configuration.model_copy(update={"jobs": dict(jobs)})
        self._before = len(self.heard)
        _write(self.file, self.configuration)

    def ask(self, job: str, request: str) -> None:
        """Asks something of a job, as a ConfigMap's mounted key does."""
        folder = self.folder / "requests"
        folder.mkdir(exist_ok=True)
        self._before = len(self.heard)
        _replace(folder / job, request)

    def wait(self, event: str, job: str | None = None) -> dict[str, Any]:
        """The first event of a kind, of a job or of the session, that this has not given yet."""
        seen, until_s = self._given.get((event, job), 0), time.monotonic() + _LIMIT_S
        with self._more:
            while True:
                for number, heard in enumerate(self.heard[seen:], start=seen + 1):
                    if job is None or heard.get("job") == job:
                        assert heard["event"] != "failed" or event == "failed" or number <= self._before, f"{heard}\n{self.log}"
                        if heard["event"] == event:
                            self._given[event, job] = number
                            return heard
                seen = len(self.heard)
                # Others go on to say that they are idle.
                assert self._more.wait(until_s - time.monotonic()), f"no {event} of {job}: {self.said}"

    def wait_for_line(self, job: str, text: str) -> None:
        """Waits until a line of a job with a text is in the log: lines and events reach the session by different pipes."""

        def is_there() -> bool:
            return any(line.startswith(f"{job}: ") and text in line for line in self.log.splitlines())

        until(is_there, f"a line of {job} with {text} in {self.folder / 'log'}")

    def count(self, event: str, job: str) -> int:
        """How often a job has said something so far."""
        return sum(one["event"] == event and one.get("job") == job for one in self.heard)

    @property
    def said(self) -> list[str]:
        """Events so far, in short."""
        return [" ".join(str(one[key]) for key in ("job", "event", "batch", "rows") if key in one) for one in self.heard]

    def listen(self, pipe: Path) -> None:
        """Reads its events to their end."""
        with pipe.open(encoding="utf-8") as lines:
            for line in lines:
                with self._more:
                    self.heard.append(json.loads(line))
                    self._more.notify_all()


@contextmanager
def running(
    aws: EmulatedAws, folder: Path, jobs: Mapping[str, SessionJob], further: Mapping[str, str] = MappingProxyType({}), *, code: int = 0
) -> Iterator[RunningSession]:
    """Runs a session until the block ends; it must end by itself then, or before.

    Args:
        aws: where its jobs have their files.
        folder: for it.
        jobs: name -> job.
        further: settings of its Spark.
        code: its exit code.
    """
    folder.mkdir()
    conf = {
        **driver_conf.of_run(folder, aws.endpoint, "us-east-1", ()),
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.scheduler.mode": "FAIR",
        **further,
    }
    configuration = SessionConfiguration(name="small-jobs", master="local[2]", executors=1, spark_conf=conf, jobs=dict(jobs))
    pipe, file = folder / "events", folder / "session.json"
    os.mkfifo(pipe)
    _write(file, configuration)
    environment = {
        **os.environ,
        **aws.environment(),
        "PYTHONPATH": str(layout.ROOT),
        "PYTHONSAFEPATH": "1",
        READY_FILE_VARIABLE: str(folder / "ready"),
    }
    command = [
        sys.executable,
        "-m",
        "penstock.jobs.session.runtime",
        str(file),
        "--requests",
        str(folder / "requests"),
        "--events",
        str(pipe),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    session = RunningSession(folder, configuration, process)
    listening = threading.Thread(target=session.listen, args=(pipe,), daemon=True)
    listening.start()
    try:
        yield session
        process.send_signal(signal.SIGTERM)
        assert process.wait(_LIMIT_S) == code, session.log
    finally:
        if process.poll() is None:
            # Those of the jobs outlive it, unless their container ends with it.
            own = [process.pid, *children(process.pid)]
            for pid in own:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        listening.join(_LIMIT_S)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text("ascii").split()]


def _write(file: Path, configuration: SessionConfiguration) -> None:
    _replace(file, configuration.model_dump_json(by_alias=True))


def _replace(file: Path, text: str) -> None:
    """At once, as the kubelet replaces what it has mounted."""
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)
