"""A broker that ends, by SIGKILL or in order, and is started again on its data and its port."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.process.supervised import SupervisedProcess
from tests.chaos.executor_traps import until


class RestartedBroker(KafkaBroker):
    """As `KafkaBroker`, until it is ended."""

    def __init__(self, *, folder: Path, log: Path) -> None:
        super().__init__(folder=folder, log=log)
        self._before: list[SupervisedProcess] = []

    def end(self, number: signal.Signals) -> None:
        """Ends it by a signal; its data stays."""
        os.kill(self.pid, number)
        until(lambda: not self.alive(), 60, "the broker has ended")

    def start_again(self) -> None:
        """Starts it on the data that it had, and waits until it responds."""
        assert self._supervised is not None
        # What watches the process that has ended removes the data once it is stopped itself.
        self._before.append(self._supervised)
        self._supervised = SupervisedProcess(self._supervised.argv, env=self._environment(), log=self.log, grace_s=10).start()
        self._wait_for_answer()

    def stop(self) -> None:
        """Ends it and removes its data; idempotent."""
        super().stop()
        for one in self._before:
            one.stop()
