"""Jobs that stay up after their check, for people who want to look at them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from penstock.scripts import layout
from penstock.scripts.background.readiness import ready
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.run import LocalRun
from penstock.scripts.process import interrupts
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

# How often the running components are checked.
_LOOK_S = 1.0
_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
# Kafka's clients log some 150 lines of settings before the first record.
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


def stay_after(error: PenstockError, runs: Sequence[LocalRun], local: LocalEnvironment, steps: Steps) -> int:
    """Shows a failure and keeps what is running until Ctrl-C, for people who want to see why.

    Args:
        error: the failure.
        runs: the jobs.
        local: the environment that they run in.
        steps: receives the lines.

    Returns:
        The exit code of the failure.
    """
    print(error.render(), file=sys.stderr, flush=True)
    try:
        stay(runs, local, steps)
    except KeyboardInterrupt:
        interrupts.taken()
        return error.exit_code


def stay(runs: Sequence[LocalRun], local: LocalEnvironment, steps: Steps) -> NoReturn:
    """Prints how to inspect what is running, and waits for Ctrl-C while all of it runs.

    Args:
        runs: the jobs.
        local: the environment that they run in.
        steps: receives the lines.

    Raises:
        PenstockError: that of a component that ends.
        KeyboardInterrupt: at Ctrl-C.
    """
    steps.title("still running; Ctrl-C stops it and tears everything down")
    for one in runs:
        steps.line(one.job.name, _to_look_at(one))
    steps.line("bucket", f"curl '{local.aws.endpoint}/{local.environment.spec.buckets.output}?list-type=2'")
    jars = f"'{Path(layout.kafka_classpath().split(os.pathsep)[0]).parent}/*'"
    steps.line("topic", f"java {_QUIET} -cp {jars} {_CONSUMER} --bootstrap-server {local.kafka.address} --from-beginning --topic NAME")
    steps.line("stop", f"Ctrl-C, or kill {os.getpid()}")
    ready()
    watched = threading.Event()
    while True:
        watched.wait(_LOOK_S)
        for one in runs:
            one.check()


def _to_look_at(one: LocalRun) -> str:
    """Where a job's results are; of one that has not come so far, its log."""
    topics = f"topics {', '.join(one.job.plan.kafka.topics)}"
    log = f"log {one.folder / 'driver.log'}"
    if not one.reading:
        return f"{log}\n{topics}"
    master = f"Spark master {one.cluster.url}, UI {one.cluster.ui}\n" if one.cluster else ""
    return f"Spark UI {one.reading['ui']}\n{master}{log}\noutput {one.results.place()}\n{topics}"
