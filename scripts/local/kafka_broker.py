"""A real Apache Kafka on this machine: one node in KRaft mode, broker and controller in one, in a supervised process."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.scripts import layout
from penstock.scripts.errors import BrokerDied, BrokerNotReady, MissingTool, PortInUse
from penstock.scripts.local import class_data
from penstock.scripts.process.supervised import SupervisedProcess

# Measured on 2 cores: 1.1 s to format, 2 s to start. A minute and a half is for a busy machine.
START_LIMIT_S = 90
# The smallest heap that handled 400,000 records of 300 bytes without a long pause.
HEAP = "256m"
_ANSWER_S = 1.0
_PORT_TRIES = 5
_TAKEN = b"Address already in use"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
share.coordinator.state.topic.num.partitions=1
log.cleaner.dedupe.buffer.size=2097152
# Events carry the times of their own day; a broker that deletes by age would drop them at once.
log.retention.ms=-1
"""


class KafkaBroker:
    """A running broker; its data is deleted when it ends.

    Args:
        folder: an empty or missing folder for its data and settings, removed at the end.
        log: the file for the broker's output.
        port: its port, or 0 for a free one.
        port_option: the option that set the port, for the error message.
        start_limit_s: how long it may take to start.
        host: an IP address of this machine, for clients that are not on its loopback interface.
        java_options: further options of the broker's JVM.
        stop_limit_s: how long it may take to stop before it is killed.
    """

    def __init__(
        self,
        *,
        folder: Path,
        log: Path,
        port: int = 0,
        port_option: str = "--kafka-port",
        start_limit_s: float = START_LIMIT_S,
        host: str = "127.0.0.1",
        java_options: Sequence[str] = (),
        stop_limit_s: float = 10,
    ) -> None:
        self.log = log
        self._host = host
        self._folder = folder
        self._asked_port = port
        self._port_option = port_option
        self._start_limit_s = start_limit_s
        self._java_options = tuple(java_options)
        self._stop_limit_s = stop_limit_s
        self._supervised: SupervisedProcess | None = None
        self._port = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """``host:port``, for ``bootstrap.servers``."""
        return f"{self._host}:{self._port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self._supervised is not None
        return self._supervised.pid

    def start(self) -> Self:
        """Formats a data folder, starts the broker and waits until it responds.

        Raises:
            PortInUse: RUN-002.
            BrokerDied: RUN-010, with the end of its log.
            BrokerNotReady: RUN-011.
            ToolMissing: TOOL-001 or TOOL-020, Java or the jars are missing.
        """
        tries = 1 if self._asked_port else _PORT_TRIES
        while True:
            tries -= 1
            before = len(self._said())
            try:
                self._start_on(*self._ports())
            except BrokerDied:
                # A free port is chosen before the broker binds it, and another process may be faster.
                if not tries or _TAKEN not in self._said()[before:]:
                    raise
            else:
                return self

    def alive(self) -> bool:
        """Whether it is running."""
        return self._supervised is not None and self._supervised.alive()

    def check(self) -> None:
        """Returns while it runs.

        Raises:
            BrokerDied: RUN-010.
        """
        if self._supervised is not None and not self._supervised.alive():
            given = f"exit code {self._supervised.returncode}; the end of its log, {self.log}:\n{self._supervised.tail()}"
            raise BrokerDied(path="kafka", given=given, need="a broker that runs until it is stopped", fix="check its log, and retry")

    def stop(self) -> None:
        """Ends it and removes its data; idempotent."""
        if self._supervised is not None:
            self._supervised.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _said(self) -> bytes:
        """Its log, which may also contain an earlier broker's output."""
        return self.log.read_bytes() if self.log.exists() else b""

    def _start_on(self, port: int, controller_port: int) -> None:
        self._port = port
        settings = self._settings(controller_port)
        java, *arguments = self._java("kafka.Kafka", str(settings))
        command = [java, *self._java_options, *arguments]
        try:
            self._format(settings)
            self._supervised = SupervisedProcess(
                command, env=self._environment(), log=self.log, remove=self._folder, grace_s=self._stop_limit_s
            )
            self._supervised.start()
            self._wait_for_answer()
        except BaseException:
            self.stop()
            raise

    def _ports(self) -> tuple[int, int]:
        """The broker's port and the controller's; both are held at once, so that they differ."""
        with ExitStack() as held:
            return self._free(held, self._asked_port), self._free(held, 0)

    def _free(self, held: ExitStack, port: int) -> int:
        listener = held.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, port))
        except OSError as error:
            fix = f"stop the process listening on it, or choose another port with {self._port_option}; 0 selects a free one"
            raise PortInUse(path=f"{self._host}:{port}", given=error.strerror or "", need="a free port for Kafka", fix=fix) from None
        return int(listener.getsockname()[1])

    def _settings(self, controller_port: int) -> Path:
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        settings = self._folder / "server.properties"
        text = _PROPERTIES.format(host=self._host, port=self._port, controller_port=controller_port, data=data.resolve())
        settings.write_text(text, encoding="utf-8")
        return settings

    def _format(self, settings: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = self._java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", str(settings))
        try:
            done = subprocess.run(
                command, env=self._environment(), capture_output=True, text=True, timeout=self._start_limit_s, check=False
            )
        except OSError as error:
            fix = "install Java, or correct JAVA_HOME; ./scripts/setup --check reports the version"
            raise MissingTool(path="java", given=f"{command[0]}: {error.strerror}", need="an executable Java", fix=fix) from None
        except subprocess.TimeoutExpired:
            need = f"a formatted data directory within {self._start_limit_s:g} s"
            raise BrokerNotReady(path="kafka", given=str(settings.parent), need=need, fix="retry when the machine is less busy") from None
        if done.returncode != 0:
            given = f"kafka.tools.StorageTool exited with code {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}"
            raise BrokerDied(path="kafka", given=given, need="a writable data directory", fix="check the disk, and retry")

    def _java(self, main: str, *arguments: str) -> list[str]:
        flags = [
            *class_data.kafka().options(),
            f"-Xmx{HEAP}",
            f"-Djava.io.tmpdir={self._folder}",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Djava.awt.headless=true",
            f"-Dkafka.logs.dir={self._folder}",
        ]
        return [_java(), *flags, "-cp", layout.kafka_classpath(), main, *arguments]

    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "JAVA_TOOL_OPTIONS"))}

    def _wait_for_answer(self) -> None:
        # The client would log each refused connection to standard error.
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        until_s = time.monotonic() + self._start_limit_s
        while time.monotonic() < until_s:
            self.check()
            try:
                if admin.list_topics(timeout=_ANSWER_S).brokers:
                    return
            except KafkaException:
                continue
        need = f"a response within {self._start_limit_s:g} s"
        raise BrokerNotReady(path="kafka", given=self.address, need=need, fix=f"check {self.log}, and retry")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
