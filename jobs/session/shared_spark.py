"""The Spark of a session, as the process of one of its jobs has it.

The process attaches to the JVM that the session's driver has started, by a gateway of its own: Spark, its executors and their memory are
shared, Python and its modules are not. Sources: PySpark 4.3.0, `pyspark.java_gateway.launch_gateway`, which connects to a JVM that exists
by PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET; Spark's documentation, "Job Scheduling", "Scheduling Within an Application".
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver import session as spark_session
from penstock.jobs.driver.errors import SettingOfSession
from penstock.jobs.python_daemon import IDLE_S_VARIABLE
from penstock.jobs.spec import StreamingJob

# Of Spark's fair scheduler: jobs of different pools get their share of the slots in turn.
_POOL = "spark.scheduler.pool"
# Spark starts Python workers for each environment of theirs: those of one job, and of one state of its app, are never another's.
_WORKERS_OF = "PENSTOCK_WORKERS_OF"
# Ours: a job with a longer trigger has a daemon start for each micro-batch, in seconds; one whose app has changed gives its memory back
# after this. Spark itself ends workers that have been idle for a minute.
_IDLE_S = 600.0
# Source: Spark's documentation, "Configuration", "Runtime SQL Configuration" and "Static SQL Configuration".
_OF_A_SESSION = ("spark.sql.", "spark.penstock.")


class SharedSpark:
    """Spark as the process of a session's job has it.

    Args:
        job: name of the job.
        app: archive of its app for the executors; None: they have it in their image.
        app_path: folders with its modules on this machine.
    """

    def __init__(self, job: str, app: Path | None = None, app_path: tuple[str, ...] = ()) -> None:
        self._job = job
        self._app = app
        self._app_path = app_path
        self.gauges = f"penstock.job.{job}."

    def session(self, job: StreamingJob, configuration: RuntimeConfiguration, conf: Mapping[str, str]) -> SparkSession:
        """As `penstock.jobs.driver.spark.DriverSpark.session`: a session beside those of the other jobs.

        Raises:
            SettingOfSession: JOB-113.
        """
        session = attached()
        apply_settings(session, self._job, {**spark_session.FIXED, **conf})
        context = session.sparkContext
        context.setLocalProperty(_POOL, self._job)
        context.environment[IDLE_S_VARIABLE] = f"{_IDLE_S:g}"
        context.environment[_WORKERS_OF] = self._job if self._app is None else f"{self._job} {self._app.name}"
        if self._app is not None:
            context.addPyFile(str(self._app))
        # In local mode the workers are on this machine, with the environment of the process that has started the JVM.
        paths = (*configuration.package_path, *(self._app_path if str(context.master).startswith("local") else ()))
        if paths:
            spark_session.give_workers(session, paths)
        return session

    def stop(self, session: SparkSession) -> None:
        """As `penstock.jobs.driver.spark.DriverSpark.stop`: Spark belongs to the session, whose driver ends what is left of the job."""

    def abort(self) -> None:
        """As `penstock.jobs.driver.spark.DriverSpark.abort`, and as `stop`."""


def apply_settings(session: SparkSession, job: str, conf: Mapping[str, str]) -> None:
    """Sets the settings of a job in its Spark session.

    Args:
        session: of the job, in the Spark that it shares.
        job: its name, for the error.
        conf: its settings.

    Raises:
        SettingOfSession: JOB-113, for those that Spark has once for all sessions, where Spark's own value is another.
    """
    differing = list(_differing(session, conf))
    if differing:
        raise SettingOfSession(
            path=f"job {job}",
            given="; ".join(differing),
            need="the values of the session: these settings are of Spark as a whole, which all jobs of a session share",
            fix="give all jobs of the session the same values, or run this one outside of the session",
        )


def _differing(session: SparkSession, conf: Mapping[str, str]) -> Iterator[str]:
    """Sets what a session can have; the settings that it can't have, where Spark's own value is another."""
    for key, value in conf.items():
        own = session.conf.get(key, None)
        if own != value and not (key.startswith(_OF_A_SESSION) and _is_set(session, key, value)):
            yield f"{key}: {value} (session: {own})"


def _is_set(session: SparkSession, key: str, value: str) -> bool:
    """Sets a setting; False if it is one of Spark's static ones."""
    try:
        session.conf.set(key, value)
    except PySparkException:
        return False
    return True


def attached() -> SparkSession:
    """A Spark session of the driver whose gateway the environment names."""
    # PySpark gives it no types.
    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    shared = gateway.entry_point
    context = gateway.jvm.JavaSparkContext.fromSparkContext(shared.sparkContext())
    session = SparkSession(SparkContext(conf=SparkConf(_jconf=context.getConf()), gateway=gateway, jsc=context), shared)
    # PySpark's own handler cancels the Spark jobs of the whole application.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return session
