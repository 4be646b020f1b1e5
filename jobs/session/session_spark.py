"""The Spark of a session in the driver's process, which starts it and gives each process of a job a gateway to it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from penstock.jobs.configuration.session import SessionConfiguration
from penstock.jobs.driver.lag import gauge
from penstock.jobs.driver.spark import OwnSpark, stacks_conf, started
from penstock.jobs.driver.watch import within

# Followed by a job's name: 1 while its queries read; the gauges of the job's process stay as they were when that ends.
# infra/manifests/prometheus.py reads the name as Spark's Prometheus servlet spells it.
READING = "penstock.reading."
# A query that a job's process has left is stopped with its tasks, in seconds. One that does not end by then writes nothing that counts:
# the job's next process has another token.
_STOP_S = 30.0


@dataclass(frozen=True)
class Gateway:
    """How the process of a job reaches Spark, on this machine.

    Args:
        port: of the gateway.
        secret: without which it answers nothing.
    """

    port: int
    secret: str


class SessionSpark:
    """The Spark of a session.

    Args:
        configuration: of the session.
    """

    def __init__(self, configuration: SessionConfiguration) -> None:
        limits = [job.configuration.progress_timeout_s for job in configuration.jobs.values()]
        conf = {**(stacks_conf(min(limits)) if limits else {}), **configuration.spark_conf}
        self._session: SparkSession = started(configuration.name, configuration.master, conf)
        self._executors = configuration.executors
        # Job -> its gauge, and what that shows.
        self._reading: dict[str, tuple[Any, bool]] = {}

    @property
    def ended(self) -> bool:
        """Whether Spark has ended by itself: its JVM has died, or it has given up."""
        try:
            return bool(self._context._jsc.sc().isStopped())
        except (Py4JError, OSError):
            return True

    @contextmanager
    def gateway(self) -> Iterator[Gateway]:
        """A gateway to a Spark session of its own, for one process; what that has left running is ended with it."""
        jvm: Any = self._session._jvm
        own = self._java_session.newSession()
        secret = secrets.token_hex(32)
        loopback = jvm.java.net.InetAddress.getLoopbackAddress()
        builder = getattr(jvm, "py4j.ClientServer$ClientServerBuilder")(own)
        server = builder.authToken(secret).javaAddress(loopback).javaPort(0).build()
        server.startServer()
        try:
            yield Gateway(server.getJavaServer().getListeningPort(), secret)
        finally:
            try:
                within(_STOP_S, lambda: _stop_queries(own))
                server.shutdown()
            except (Py4JError, OSError) as error:
                print(f"WARN a gateway is not closed: {type(error).__name__}: {error}", file=sys.stderr)

    def ask_for(self, executors: int) -> None:
        """Asks for more executors, if the session has grown; those that it does not need any more stay until the driver's next start.

        Args:
            executors: their number.
        """
        if executors > self._executors:
            self._context._jsc.sc().requestExecutors(executors - self._executors)
            self._executors = executors

    def show_reading(self, job: str, reading: bool) -> None:
        """Shows among Spark's metrics whether the queries of a job read.

        Args:
            job: its name.
            reading: whether they do.
        """
        shown, value = self._reading.get(job, (None, None))
        if value != reading:
            # Of a JVM that has died nobody reads any.
            with suppress(Py4JError, OSError):
                shown = shown or gauge(self._session, f"{READING}{job}")
                shown.setValue(int(reading))
                self._reading[job] = (shown, reading)

    def stop(self) -> None:
        """Stops it."""
        OwnSpark().stop(self._session)

    @property
    def _context(self) -> Any:
        return self._session.sparkContext

    @property
    def _java_session(self) -> Any:
        return self._session._jsparkSession


def _stop_queries(session: Any) -> None:
    """Stops the queries of a Java session."""
    for query in session.streams().active():
        try:
            query.stop()
        except Py4JNetworkError:
            raise
        except Py4JError as error:
            # One that has failed says so again.
            print(f"WARN a query that its process has left: {str(error).splitlines()[0]}", file=sys.stderr)
