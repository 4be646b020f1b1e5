"""What the driver of a session is started with: Spark's settings, and its jobs, each with its configuration, its files and its app.

The file changes while the driver runs: a deploy that changes a job, adds one or removes one writes it anew, and the driver follows
(`penstock.jobs.session.runtime`). What concerns the pods is in the pod's template too, and restarts the driver.
"""

from __future__ import annotations

import json
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from penstock.jobs.configuration.runtime import RuntimeConfiguration

# Of a spec in `SessionJob.files`.
SPEC = "job.yaml"
# The configuration in the folder that the driver is started with, and follows.
SESSION = "session.json"
# Where the driver finds what people ask of its jobs: a ConfigMap with a key for each job that they have asked something of. It need not
# exist.
REQUESTS_FOLDER = "/etc/penstock-requests"
# The job is not to run. Any other text is one by which it is: a job that waits after a failure starts at once when the text changes.
STOP = "stop"


class _Configured(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class AppArchive(_Configured):
    """The modules of an app, on S3.

    Args:
        uri: ``s3a://bucket/key`` of a ZIP file.
        sha256: of the file, in hexadecimal digits.
    """

    uri: str
    sha256: str


class SessionJob(_Configured):
    """A job of a session.

    Args:
        configuration: as of a job with a driver of its own, but for ``spec``, the name of the spec in `files`, and for ``spark_conf``,
            which has the settings of the job's own Spark session alone.
        files: name -> text: the spec, Avro schemas, and an app in SQL.
        app: None: the app is part of the image.
    """

    configuration: RuntimeConfiguration
    files: dict[str, str]
    app: AppArchive | None = None

    @model_validator(mode="after")
    def _has_its_spec(self) -> Self:
        if self.configuration.spec not in self.files:
            raise ValueError(f"no file {self.configuration.spec}")
        return self


class SessionConfiguration(_Configured):
    """The configuration file of a session's driver, written by whatever deploys it.

    Args:
        name: of the session.
        master: Spark's master.
        executors: their number, with the jobs that the session has; a running driver asks for more as jobs are added.
        spark_conf: the settings of the session's driver and executors, shared by its jobs.
        jobs: name -> job.
    """

    name: str
    master: str
    executors: int = Field(ge=1)
    spark_conf: dict[str, str] = Field(default_factory=dict)
    jobs: dict[str, SessionJob]


def requests_config_map(session: str) -> str:
    """The name of the ConfigMap with what people ask of a session's jobs; what asks first creates it in the session's namespace.

    Args:
        session: its name.
    """
    return f"{session}-requests"


def log_line(job: str, line: str) -> str:
    """A line that a job's process has written to its standard output or error, as the log of the session's driver has it."""
    return f"{_log_prefix(job)}{line}"


def is_of_job(job: str, line: str) -> bool:
    """Whether a line in the log of a session's driver is of one of its jobs: something that it has printed, or an event of it.

    Args:
        job: its name.
        line: of the log.
    """
    if line.startswith(_log_prefix(job)):
        return True
    try:
        event = json.loads(line)
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("job") == job


def _log_prefix(job: str) -> str:
    return f"{job}: "
