"""Spark as a driver has it: started for one job, and stopped with it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver import session as spark_session
from penstock.jobs.driver.old_executors import delete_old_executors
from penstock.jobs.driver.pod import pod_conf
from penstock.jobs.driver.watch import within
from penstock.jobs.spec import StreamingJob

# Spark's stop cancels its tasks and deletes the executors' pods, in seconds. One that hangs as its query does is not waited for.
_STOP_S = 20.0


class DriverSpark(Protocol):
    """Spark as the driver of a job has it."""

    @property
    def gauges(self) -> str:
        """What the names of the job's gauges begin with."""

    def session(self, job: StreamingJob, configuration: RuntimeConfiguration, conf: Mapping[str, str]) -> SparkSession:
        """The Spark session of a job.

        Args:
            job: the job.
            configuration: what its driver was started with.
            conf: the settings of the job.

        Raises:
            PenstockError: what the session can't have.
        """

    def stop(self, session: SparkSession) -> None:
        """Ends what `session` has begun."""

    def abort(self) -> None:
        """Ends it in a process that hangs, within a limit, before the process is ended."""


class OwnSpark:
    """Spark in a driver of one job: it is started and stopped with it."""

    gauges = "penstock."

    def session(self, job: StreamingJob, configuration: RuntimeConfiguration, conf: Mapping[str, str]) -> SparkSession:
        """As `DriverSpark.session`: starts Spark."""
        stacks = stacks_conf(configuration.progress_timeout_s)
        return started(job.metadata.name, configuration.master, {**stacks, **conf}, configuration.package_path)

    def stop(self, session: SparkSession) -> None:
        """As `DriverSpark.stop`. If Spark's JVM has died, this fails too, and must not replace the failure that it died of."""
        with suppress(Py4JError, OSError):
            session.stop()

    def abort(self) -> None:
        """As `DriverSpark.abort`."""
        context: Any = SparkContext._active_spark_context
        if context is not None:
            within(_STOP_S, context.stop)
            _kill_jvm(context)


def stacks_conf(progress_timeout_s: float) -> dict[str, str]:
    """The setting by which the log of an executor, and in local mode the driver's, has the stacks of Python functions that do not end.

    Args:
        progress_timeout_s: seconds after which a query hangs; the stacks are there by then.
    """
    return {"spark.python.worker.tracebackDumpIntervalSeconds": str(max(1, int(progress_timeout_s / 2)))}


def started(name: str, master: str, conf: Mapping[str, str], package_path: tuple[str, ...] = ()) -> SparkSession:
    """Starts Spark in a pod, or outside of one.

    Args:
        name: of the application, and in a pod of its job or session.
        master: Spark's master.
        conf: settings.
        package_path: folders with packages for the workers of all executors.
    """
    delete_old_executors(name)
    session = spark_session.build(name, master, {**conf, **pod_conf()}, package_path)
    session.sparkContext.setLogLevel("WARN")
    return session


def _kill_jvm(context: Any) -> None:
    """Kills the JVM that this process has started; with spark-submit in cluster mode it is the parent, and ends with its program."""
    process = getattr(context._gateway, "proc", None)
    if process is not None:
        with suppress(ProcessLookupError):
            process.kill()
