"""Spark's standalone cluster on this machine: a master, and workers with one executor each, every one a process of its own.

A worker stands for a node: it has its own address, its own folder for its executor's files and shuffle blocks, and can be killed with it.
Its environment is that of the image on Kubernetes: Penstock and the app's folders on the PYTHONPATH, the credentials, and none of the
driver's variables.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.scripts import layout
from penstock.scripts.errors import PortInUse, SparkClusterDied, SparkClusterNotReady
from penstock.scripts.local import class_data
from penstock.scripts.local.spark_home import spark_home
from penstock.scripts.process.supervised import SupervisedProcess

HOST = "127.0.0.1"
PORT_OPTION = "--master-port"
# Measured on 2 cores: 3 s for the master, 3 s more for two workers; 43 s under a load of 14. Three minutes are for a busy machine.
START_LIMIT_S = 180
# A worker asks its executor to end; the executor has nothing to save.
GRACE_S = 5
_POLL_S = 0.05
# Of a log that an error shows.
_LINES = 20
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_UI = re.compile(r"Bound MasterWebUI to .*, and started at (http://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")
_WITH_DRIVER = re.compile(r"Successfully registered with driver")
_TAKEN = "Address already in use"
# An executor inherits its worker's variables. All others of this process would be missing in the image.
# With the cache of bytecode: executors write none, as in the image, whose packages are compiled.
_INHERITED = frozenset({"PATH", "HOME", "USER", "TZ", "LANG", "JAVA_HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX"})
_DAEMON_HEAP = "200m"
_DAEMON_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # A port that is in use is an error; Spark would take the next one.
    "-Dspark.port.maxRetries=0",
    # Its port is fixed, and nothing is submitted to it.
    "-Dspark.master.rest.enabled=false",
)
# Options of Spark's JVMs for a run of minutes on few cores: the optimizing compiler would cost more than its code saves. Without it a JVM
# reserves 48 MB for code instead of 240. Spark fills these within minutes; a quarter of the tier spark's CPU time went into sweeping them.
_FAST_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC"


def fast_start() -> str:
    """JVM options of local drivers and executors."""
    return f"{_FAST_START} {class_data.options()}".strip()


@dataclass(frozen=True)
class ExecutorSize:
    """What an executor gets.

    Args:
        slots: concurrent tasks, 1 or more.
        heap_mib: its heap.
        overhead_mib: memory in addition to the heap: the JVM's own, RocksDB's and the Python workers'.
    """

    slots: int
    heap_mib: int
    overhead_mib: int

    @property
    def memory_mib(self) -> int:
        """All its memory."""
        return self.heap_mib + self.overhead_mib


class SparkWorker:
    """A worker with its executor, and its disk.

    Args:
        folder: its disk: a missing folder, removed when it ends.
        host: its address.
        log: the file for its output; the logs of its executors are in a folder beside it, which stays.
        master: URL of the master.
        size: of its executor.
        environment: its complete environment, without its folders.
    """

    def __init__(self, folder: Path, *, host: str, log: Path, master: str, size: ExecutorSize, environment: Mapping[str, str]) -> None:
        self.folder = folder.absolute()
        self.host = host
        self.log = log
        local, temporary = self.folder / "local", self.folder / "tmp"
        for one in (local, temporary):
            one.mkdir(parents=True)
        # LOCAL_DIRS is where s3a buffers its uploads. Source: Hadoop 3.5's core-default.xml, fs.s3a.buffer.dir.
        disk = {"SPARK_LOCAL_DIRS": str(local), "LOCAL_DIRS": str(local)}
        env = {**environment, "SPARK_LOCAL_IP": host, "SPARK_PUBLIC_DNS": host, **disk, **_temporary(environment, temporary)}
        options = ["--cores", str(size.slots), "--memory", f"{size.memory_mib}M", "--work-dir", str(self.work_folder)]
        command = [str(_spark_class()), _WORKER, "--host", host, "--webui-port", "0", *options, master]
        self._supervised = SupervisedProcess(command, env=env, log=log, cwd=self.folder, remove=self.folder, grace_s=GRACE_S)

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def work_folder(self) -> Path:
        """The folder in which it starts executors: ``<application>/<number>/stderr`` is the log of one."""
        return self.log.absolute().with_name(f"{self.name}-executors")

    @property
    def pid(self) -> int:
        """Its process id, also the id of the process group that its executor belongs to."""
        return self._supervised.pid

    def start(self) -> Self:
        """Starts it; `registered` tells when it is ready."""
        self._supervised.start()
        return self

    def alive(self) -> bool:
        """Whether it is running."""
        return self._supervised.alive()

    def registered(self) -> bool:
        """Whether the master has accepted it."""
        return _said(self.log, _REGISTERED) is not None

    def check(self) -> None:
        """Returns while it runs.

        Raises:
            SparkClusterDied: RUN-040.
        """
        fix = "retry; the standalone master does not replace a worker"
        _check(self._supervised, self.name, "a Spark worker that runs until it is stopped", fix)

    def executor_pids(self) -> list[int]:
        """Process ids of its executors, oldest first: one, or none while it starts or after its end. Linux only."""
        return [pid for pid in _children(self.pid) if _EXECUTOR in _read(Path(f"/proc/{pid}/cmdline"))]

    def executor_logs(self) -> list[Path]:
        """The logs of its executors, oldest first."""
        # The name of an application begins with the time of its start; its executors are numbered.
        return sorted(self.work_folder.glob("*/*/stderr"), key=lambda log: (log.parts[-3], int(log.parts[-2])))

    def kill(self) -> None:
        """Kills it with its executor and removes its disk, as the loss of a node does.

        Returns when its process group has ended. Python workers, which Spark gives a group of their own, end when they notice.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Ends it with its executor and removes its disk; idempotent."""
        self._supervised.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class SparkCluster:
    """A running cluster.

    Args:
        folder: a missing or empty folder for its logs and the workers' disks.
        executors: how many workers, with one executor each.
        size: of an executor.
        environment: variables of the executors in addition to those of this process, such as credentials.
        app_path: folders with the app's modules, first on the executors' PYTHONPATH.
        port: of the master, or 0 for a free one.
        start_limit_s: how long master and workers may each take to start.
    """

    def __init__(
        self,
        folder: Path,
        *,
        executors: int,
        size: ExecutorSize,
        environment: Mapping[str, str],
        app_path: Sequence[Path] = (),
        port: int = 0,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        self.folder = folder.absolute()
        self.log = self.folder / "master.log"
        self.size = size
        self.workers: list[SparkWorker] = []
        self._executors = executors
        self._environment = _environment(environment, app_path)
        self._asked_port = port
        self.start_limit_s = start_limit_s
        self._master: SupervisedProcess | None = None
        self._url = self._ui = ""
        self._numbers = iter(range(1, sys.maxsize))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """``spark://127.0.0.1:port``, the driver's master."""
        return self._url

    @property
    def ui(self) -> str:
        """URL of the master's UI."""
        return self._ui

    @property
    def pid(self) -> int:
        """The master's process id."""
        assert self._master is not None
        return self._master.pid

    @property
    def spark_conf(self) -> dict[str, str]:
        """Settings with which a driver gets one executor on each worker, and waits for all of them before its first task."""
        return {
            "spark.submit.deployMode": "client",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            # A worker has the cores and the memory of one executor.
            "spark.dynamicAllocation.enabled": "false",
            "spark.executor.instances": str(self._executors),
            "spark.cores.max": str(self._executors * self.size.slots),
            "spark.executor.cores": str(self.size.slots),
            "spark.executor.memory": f"{self.size.heap_mib}m",
            "spark.executor.memoryOverhead": f"{self.size.overhead_mib}m",
            "spark.executor.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
            "spark.executor.extraJavaOptions": f"{fast_start()} -XX:+ExitOnOutOfMemoryError",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{self.start_limit_s:g}s",
        }

    def start(self) -> Self:
        """Starts the master and the workers, and waits until all workers are registered.

        Raises:
            PortInUse: RUN-002.
            SparkClusterDied: RUN-040, with the end of its log.
            SparkClusterNotReady: RUN-041.
        """
        try:
            self._start_master()
            self._wait_for_workers([self._new_worker() for _ in range(self._executors)])
        except BaseException:
            self.stop()
            raise
        return self

    def add_worker(self) -> SparkWorker:
        """Starts one more worker with an empty disk, and waits until it is registered. Raises as `start`."""
        worker = self._new_worker()
        self._wait_for_workers([worker])
        return worker

    def kill_worker(self, worker: SparkWorker) -> None:
        """Kills a worker with its executor and its disk; from then on `check` does not expect it."""
        self.workers.remove(worker)
        worker.kill()

    def executor_pids(self) -> list[int]:
        """Process ids of all executors. Linux only."""
        return [pid for worker in self.workers for pid in worker.executor_pids()]

    def wait_for_executors(self, limit_s: float) -> int:
        """Waits until each worker's executor is registered with the driver.

        Args:
            limit_s: how long.

        Returns:
            How many are registered.

        Raises:
            SparkClusterDied: RUN-040.
        """
        until_s = time.monotonic() + limit_s
        while (registered := self._registered_executors()) < len(self.workers) and time.monotonic() < until_s:
            self.check()
            time.sleep(_POLL_S)
        return registered

    def ended_executors(self) -> int:
        """How many executors have ended and were replaced by their workers."""
        return sum(max(0, len(worker.executor_logs()) - 1) for worker in self.workers)

    def last_words(self) -> str:
        """The end of the newest log of an executor, or of the master's if no executor was started; for an error."""
        log = max((log for worker in self.workers for log in worker.executor_logs()), key=lambda log: log.stat().st_mtime, default=self.log)
        with log.open(encoding="utf-8", errors="replace") as lines:
            return f"the end of {log}:\n{''.join(deque(lines, maxlen=_LINES)).rstrip()}"

    def check(self) -> None:
        """Returns while the master and all workers run.

        Raises:
            SparkClusterDied: RUN-040.
        """
        if self._master is not None:
            _check(self._master, "master", "a Spark master that runs until it is stopped", "check its log, and retry")
        for worker in self.workers:
            worker.check()

    def stop(self) -> None:
        """Ends it and removes the workers' disks; idempotent."""
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(SparkWorker.stop, self.workers))
        self.workers.clear()
        if self._master is not None:
            self._master.stop()
        shutil.rmtree(self.folder / "master", ignore_errors=True)

    def _start_master(self) -> None:
        refuse_used_port(self._asked_port)
        folder = self.folder / "master"
        folder.mkdir(parents=True, exist_ok=True)
        env = {**self._environment, **_temporary(self._environment, folder)}
        command = [str(_spark_class()), _MASTER, "--host", HOST, "--port", str(self._asked_port), "--webui-port", "0"]
        self._master = SupervisedProcess(command, env=env, log=self.log, cwd=folder, remove=folder, grace_s=GRACE_S).start()
        try:
            self._wait("master", self.log, self._has_started)
        except SparkClusterDied:
            # Another process may take the port between the look at it and the master's start.
            if _TAKEN in self.log.read_text(encoding="utf-8", errors="replace"):
                raise _port_in_use(self._asked_port, PORT_OPTION, _TAKEN) from None
            raise

    def _has_started(self) -> bool:
        self._url, self._ui = _said(self.log, _URL) or "", _said(self.log, _UI) or ""
        return bool(self._url and self._ui)

    def _registered_executors(self) -> int:
        """Read from their logs: the UI of a busy driver may take a minute to answer."""
        newest = [worker.executor_logs()[-1:] for worker in self.workers]
        return sum(_said(log, _WITH_DRIVER) is not None for logs in newest for log in logs)

    def _new_worker(self) -> SparkWorker:
        number = next(self._numbers)
        name = f"worker-{number}"
        folder, log = self.folder / name, self.folder / f"{name}.log"
        worker = SparkWorker(folder, host=_host(number), log=log, master=self.url, size=self.size, environment=self._environment)
        self.workers.append(worker)
        return worker.start()

    def _wait_for_workers(self, workers: Sequence[SparkWorker]) -> None:
        for worker in workers:
            self._wait(worker.name, worker.log, worker.registered)

    def _wait(self, name: str, log: Path, ready: Callable[[], bool]) -> None:
        until_s = time.monotonic() + self.start_limit_s
        while not ready():
            self.check()
            if time.monotonic() > until_s:
                need = f"a Spark process, {name}, that is ready within {self.start_limit_s:g} s"
                raise SparkClusterNotReady(path="spark", given=str(log), need=need, fix="check its log, and retry")
            time.sleep(_POLL_S)


def _host(number: int) -> str:
    """A loopback address for each worker: executors of one host read each other's shuffle files from the disk, and Spark starts no second
    attempt of a slow task there. The same one for all where the system has no others, as macOS.
    """
    address = f"127.0.0.{2 + number % 200}"
    try:
        with socket.create_server((address, 0)):
            return address
    except OSError:
        return HOST


def _environment(given: Mapping[str, str], app_path: Sequence[Path]) -> dict[str, str]:
    """What the image sets; of this process's own variables only those without which no program starts."""
    inherited = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
    return {
        **inherited,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_PUBLIC_DNS": HOST,
        "SPARK_DAEMON_MEMORY": _DAEMON_HEAP,
        "SPARK_DAEMON_JAVA_OPTS": " ".join((*_DAEMON_OPTIONS, class_data.options())).strip(),
        # They need none of these, but the archive of classes belongs to the class path of drivers and executors.
        "SPARK_DAEMON_CLASSPATH": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1",
        "PYTHONPATH": layout.python_path(*app_path),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYSPARK_PYTHON": sys.executable,
        **given,
    }


def _temporary(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """A folder for the temporary files of a daemon and of what it starts. An option of Spark would be the same for all executors."""
    java = f'{environment.get("JDK_JAVA_OPTIONS", "")} "-Djava.io.tmpdir={folder}"'
    return {"JDK_JAVA_OPTIONS": java.strip(), "TMPDIR": str(folder)}


def _spark_class() -> Path:
    return spark_home() / "bin" / "spark-class"


def _check(supervised: SupervisedProcess, name: str, need: str, fix: str) -> None:
    if not supervised.alive():
        given = f"exit code {supervised.returncode}; the end of its log, {supervised.log}:\n{supervised.tail()}"
        raise SparkClusterDied(path=name, given=given, need=need, fix=fix)


def refuse_used_port(port: int, option: str = PORT_OPTION) -> None:
    """Returns if the master can listen on a port.

    Args:
        port: a loopback port, or 0.
        option: the option that set it, for the error message.

    Raises:
        PortInUse: RUN-002.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise _port_in_use(port, option, error.strerror or "") from None


def _port_in_use(port: int, option: str, given: str) -> PortInUse:
    fix = f"stop the process listening on it, or choose another port with {option}; 0 selects a free one"
    return PortInUse(path=f"{HOST}:{port}", given=given, need="a free port for Spark's master", fix=fix)


def _said(log: Path, pattern: re.Pattern[str]) -> str | None:
    """The first match in a log: its group, or all of it."""
    try:
        found = pattern.search(log.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    return found[found.re.groups] if found else None


def _children(pid: int) -> list[int]:
    """The children of a process, oldest first."""
    processes = [(int(folder.name), _read(folder / "stat")) for folder in Path("/proc").glob("[0-9]*")]
    # After the name, which may contain anything, come the state and the parent. Source: proc(5).
    return sorted(child for child, stat in processes if stat and int(stat.rpartition(b")")[2].split()[1]) == pid)


def _read(file: Path) -> bytes:
    """A file of a process, empty if the process has ended."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
