"""Start of a driver and of an executor in containers of the jobs' image: ``python -m benchmarks.image_start NAME=ARCHIVE...``.

Linux, as root. Each archive, as `penstock image build --file` writes it, is unpacked, and its entry point runs in namespaces of its own for
files, processes and mounts, as the user of the pods, on the loopback network. In the place of the Kubernetes API is a standalone master
without workers: the executor is started as Spark's scheduler for Kubernetes starts it, and registers with the driver.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.infra.manifests.client_mode_conf import CLASS_DATA, CLASS_DATA_OPTIONS
from penstock.scripts.process.process_tree import ProcessTree

USER = "185"
PHASES = ("Python with its imports", "JVM", "session", "executor registered", "first micro-batch")
MEASURED = (*PHASES, "driver's CPU", "executor's CPU")
_LIMIT_S = 300
_MASTER_PORT = 17077
_DRIVER_PORT = 17078
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
# The driver's part: a stateful query with a Python worker. A line of output ends each phase.
_DRIVER = f"""
import json, sys, time

def phase(**more):
    print(json.dumps(dict(more, at=time.time())), flush=True)

import penstock.jobs.driver.runtime
from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from pyspark import SparkContext
phase()
conf = {{
    **spark_session.state_conf(State()),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.port": "{_DRIVER_PORT}",
    "spark.executor.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": sys.argv[1],
    "spark.executor.extraJavaOptions": sys.argv[1],
    # Penstock's own is for S3.
    "spark.sql.streaming.checkpointFileManagerClass": "{_CHECKPOINTS}",
    "spark.sql.warehouse.dir": "/tmp/warehouse",
    "spark.sql.shuffle.partitions": "2",
}}
import pyspark
SparkContext._ensure_initialized(conf=pyspark.SparkConf(loadDefaults=False).setAll(conf.items()))
phase()
session = spark_session.build("start", "spark://127.0.0.1:{_MASTER_PORT}", conf)
phase(application=session.sparkContext.applicationId, java=session.sparkContext.getConf().get("spark.executor.extraJavaOptions"))
context = session.sparkContext._jsc.sc()
while len(context.statusTracker().getExecutorInfos()) < 2:
    time.sleep(0.02)
phase()

def unchanged(batches):
    yield from batches

rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 2).load()
kept = rows.mapInArrow(unchanged, rows.schema)
counts = kept.groupBy((kept.value % 5).alias("key")).count()
writer = counts.writeStream.outputMode("update").format("noop").option("checkpointLocation", "file:///tmp/checkpoint")
query = writer.start()
while not query.recentProgress:
    query.awaitTermination(0.02)
phase()
sys.stdin.read()
"""


class Container:
    """An unpacked image in which commands run.

    Args:
        root: its file system.
        image: the image's configuration.
        java: options of its JVMs.
    """

    def __init__(self, root: Path, image: Mapping[str, Any], java: str) -> None:
        self.root = root
        self.java = java
        self._variables = [*image["Env"], "HOME=/tmp", "SPARK_LOCAL_DIRS=/tmp", "SPARK_LOCAL_IP=127.0.0.1"]
        self._entry_point = list(image["Entrypoint"])
        self._folder = image["WorkingDir"]
        # A kubelet writes it.
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="ascii")
        (root / "tmp/driver.py").write_text(_DRIVER, encoding="utf-8")

    @contextmanager
    def running(self, *command: str, variables: Mapping[str, str] | None = None, entry_point: bool = True) -> Iterator[Any]:
        """A command, with its standard output; it and its children are killed at the end."""
        given = [*self._variables, *(f"{name}={value}" for name, value in (variables or {}).items())]
        words = [*(self._entry_point if entry_point else ()), *command]
        # Not exec: a process that changes its user outlives the parent that kills it, but not the first one of its namespace.
        mounts = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && cd "$0"'
        script = mounts + ' && chroot --userspec=$1 . env -i -C "$2" "${@:3}"; exit $?'
        isolated = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-c",
            script,
            str(self.root),
            f"{USER}:{USER}",
            self._folder,
        ]
        log = (self.root / "tmp" / f"{command[0].rpartition('/')[2]}.log").open("wb")
        with log, subprocess.Popen([*isolated, *given, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process:
            try:
                yield process
            finally:
                process.kill()

    def start(self) -> list[float]:
        """Seconds of each of `PHASES`, one after the other, and the CPU seconds of the driver's processes and of the executor's."""
        shutil.rmtree(self.root / "tmp/checkpoint", ignore_errors=True)
        began = time.time()
        times = [began]
        with self.running("python", "/tmp/driver.py", self.java) as driver:
            times += [_next(driver)["at"] for _ in range(2)]
            session = _next(driver)
            times.append(session["at"])
            with self.running("executor", variables=self._executor(session["application"], session["java"])) as executor:
                times += [_next(driver)["at"] for _ in range(2)]
                cpu_s = [ProcessTree(process.pid).cpu_s() for process in (driver, executor)]
        return [*(after - before for before, after in pairwise(times)), *cpu_s]

    def _executor(self, application: str, java: str) -> dict[str, str]:
        """What Spark's scheduler for Kubernetes sets. Source: BasicExecutorFeatureStep of spark-kubernetes 4.3.0."""
        options = [f"-Dspark.driver.port={_DRIVER_PORT}", *java.split()]
        return {
            "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{_DRIVER_PORT}",
            "SPARK_EXECUTOR_CORES": "1",
            "SPARK_EXECUTOR_MEMORY": "1g",
            "SPARK_APPLICATION_ID": application,
            "SPARK_CONF_DIR": "/opt/spark/conf",
            "SPARK_EXECUTOR_ID": "1",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
            "SPARK_EXECUTOR_POD_NAME": "executor-1",
            **{f"SPARK_JAVA_OPT_{number}": option for number, option in enumerate(options)},
        }


def main() -> None:
    """Prints the medians of what is measured of each image."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image_start", description=__doc__)
    parser.add_argument("images", nargs="+", metavar="NAME=ARCHIVE")
    parser.add_argument("--rounds", type=int, default=5)
    said = "options of an image's JVMs, instead of a deployment's"
    parser.add_argument("--java", action="append", default=[], metavar="NAME=OPTIONS", help=said)
    arguments = parser.parse_args()
    # As Ctrl-C: the containers end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    java = dict(one.split("=", 1) for one in arguments.java)
    with tempfile.TemporaryDirectory(prefix="penstock-benchmark-") as folder:
        containers = {}
        for name, _, archive in (one.partition("=") for one in arguments.images):
            root = Path(folder) / name
            image = unpacked(Path(archive), root)
            containers[name] = Container(root, image, java.get(name, deployed_java(root)))
        seconds: dict[str, list[list[float]]] = {name: [] for name in containers}
        # One round more than asked for: the first reads the files. Alternately, so that other load meets all alike.
        for number in range(arguments.rounds + 1):
            for name, container in containers.items():
                with _master(container):
                    measured = container.start()
                if number:
                    seconds[name].append(measured)
    print(f"{'seconds':<24}" + "".join(f"{name:>16}" for name in seconds))
    for number, measure in enumerate(MEASURED):
        medians = [statistics.median(some[number] for some in rounds) for rounds in seconds.values()]
        print(f"{measure:<24}" + "".join(f"{median:>16.1f}" for median in medians))


def deployed_java(root: Path) -> str:
    """The options of JVMs that a deployment gives an image of this release, and none for one without the archive of classes.

    Args:
        root: the image's file system.
    """
    return CLASS_DATA_OPTIONS if (root / CLASS_DATA.lstrip("/")).is_file() else ""


def unpacked(archive: Path, root: Path) -> dict[str, Any]:
    """Writes an image's files below a folder.

    Args:
        archive: of Docker's format.
        root: the folder.

    Returns:
        The image's configuration.
    """
    root.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        (manifest,) = json.loads(_read(tar, "manifest.json"))
        for layer in manifest["Layers"]:
            content = tar.extractfile(layer)
            assert content is not None
            with tarfile.open(fileobj=content) as files:
                files.extractall(root, filter="fully_trusted")
            for gone in list(root.rglob(".wh.*")):
                target = gone.with_name(gone.name.removeprefix(".wh."))
                shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
                gone.unlink()
        configuration: dict[str, Any] = json.loads(_read(tar, manifest["Config"]))["config"]
    return configuration


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


@contextmanager
def _master(container: Container) -> Iterator[None]:
    command = ("/opt/spark/bin/spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(_MASTER_PORT))
    with container.running(*command, "--webui-port", "0", entry_point=False):
        until = time.monotonic() + _LIMIT_S
        while f":{_MASTER_PORT:04X} " not in Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text():
            if time.monotonic() > until:
                raise SystemExit(f"no master; see {container.root}/tmp")
            time.sleep(0.1)
        yield


def _next(driver: Any) -> dict[str, Any]:
    line = driver.stdout.readline()
    if not line:
        raise SystemExit("the driver has ended")
    found: dict[str, Any] = json.loads(line)
    return found


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("it needs root, for namespaces")
    main()
