"""One Spark session, one broker and one emulated S3 for all the tests of the tier; in the tier executors also one cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from pyspark.sql import SparkSession

from penstock.jobs.driver import session as spark_session
from penstock.jobs.driver.spark import stacks_conf
from penstock.jobs.spec import State
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import class_data
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.kafka_topics import Feeder
from penstock.scripts.local.spark_cluster import ExecutorSize, SparkCluster, fast_start
from penstock.scripts.progress import Steps
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, PROGRESS_S, Surroundings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# From here the Python workers import the apps that tests write, and the package itself.
_IMPORTED = (Path(__file__).parent, layout.ROOT)


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as emulated, pytest.MonkeyPatch.context() as patch:
        for name, value in emulated.environment().items():
            patch.setenv(name, value)
        yield emulated


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    folder = tmp_path_factory.mktemp("kafka")
    class_data.kafka().make(Steps())
    with KafkaBroker(folder=folder / "data", log=folder / "kafka.log") as broker:
        yield broker


@pytest.fixture(scope="session")
def s3(aws: EmulatedAws) -> S3Client:
    client = boto3.client("s3")
    for bucket in (CHECKPOINTS, OUTPUT):
        client.create_bucket(Bucket=bucket)
    return client


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster | None]:
    """Two executors in the tier executors; elsewhere the tasks run in the driver's process."""
    if request.config.getoption("markexpr") != "executors":
        yield None
        return
    folder = tmp_path_factory.mktemp("cluster")
    size = ExecutorSize(slots=1, heap_mib=700, overhead_mib=300)
    with SparkCluster(folder, executors=2, size=size, environment=aws.environment(), app_path=_IMPORTED) as running:
        yield running


@pytest.fixture(scope="session")
def session(
    aws: EmulatedAws, s3: S3Client, cluster: SparkCluster | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    class_data.make(Steps())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, _IMPORTED)))
        # Without it the folder that the JVM was started in, the checkout, goes before all others: it has a folder called jobs.
        patch.setenv("PYTHONSAFEPATH", "1")
        conf = {**spark_session.state_conf(State()), **_conf(aws, folder), **(_cluster_conf(cluster) if cluster else {})}
        session = spark_session.build("tests", cluster.url if cluster else "local[2]", conf)
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def feeder(kafka: KafkaBroker) -> Feeder:
    return Feeder(kafka.address)


@pytest.fixture
def surroundings(session: SparkSession, kafka: KafkaBroker, feeder: Feeder, s3: S3Client, tmp_path: Path) -> Surroundings:
    return Surroundings(session=session, brokers=kafka.address, s3=s3, folder=tmp_path, feeder=feeder)


def _cluster_conf(cluster: SparkCluster) -> dict[str, str]:
    return {
        **cluster.spark_conf,
        # By default a task waits 15 s for the blocks of an executor that is gone.
        "spark.shuffle.io.retryWait": "1s",
        # What the tier tries is processes. The same tests try generated code in the tier spark, where it is compiled once; here each
        # executor, and each that replaces one, would compile it again for a few rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }


def _conf(aws: EmulatedAws, folder: Path) -> dict[str, str]:
    return {
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.driver.memory": "1500m",
        "spark.driver.extraJavaOptions": f"{fast_start()} -Djava.io.tmpdir={folder}",
        "spark.hadoop.hadoop.tmp.dir": str(folder),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.noDataProgressEventInterval": "0",
        "spark.ui.enabled": "false",
        **stacks_conf(PROGRESS_S),
        "spark.hadoop.fs.s3a.endpoint": aws.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
