"""What the driver of a session is started with: Spark's settings, and its jobs, each with its configuration, its files and its app.

The file changes while the driver runs: a deploy that changes a job, adds one or removes one writes it anew, and the driver follows
(`penstock.jobs.session.runtime`). What concerns the pods is in the pod's template too, and restarts the driver.
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from penstock.jobs.configuration.runtime import RuntimeConfiguration

# Of a spec in `SessionJob.files`.
SPEC = "job.yaml"
# The configuration in the folder that the driver is started with, and follows.
SESSION = "session.json"
# Where the driver finds which of its jobs are stopped: a ConfigMap with a key for each of them, which need not exist.
STOPPED_FOLDER = "/etc/penstock-stopped"


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


def stopped_config_map(session: str) -> str:
    """The name of the ConfigMap that says which jobs of a session are stopped; what stops one creates it in the session's namespace.

    Args:
        session: its name.
    """
    return f"{session}-stopped"
