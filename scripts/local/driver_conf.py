"""Spark settings of a driver that is a process of this machine, which are added to a plan's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.app_packages import jars_conf
from penstock.scripts import layout
from penstock.scripts.local.spark_cluster import fast_start


def of_machine(scratch: Path, jars: Sequence[Path]) -> dict[str, str]:
    """The jars that jobs need, loopback, and one folder for all that Spark writes to disk.

    Args:
        scratch: an existing folder, an absolute path.
        jars: of the app's own packages.

    Raises:
        NotSetUp: TOOL-020.
        CacheOfAnotherVersion: TOOL-016.
    """
    return {
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.hadoop.hadoop.tmp.dir": str(scratch),
        **jars_conf(str(jar) for jar in jars),
    }


def of_s3(region: str, endpoint: str | None) -> dict[str, str]:
    """How S3 is reached.

    Args:
        region: of the buckets.
        endpoint: URL of an emulated S3; None: that of AWS.
    """
    conf = {"spark.hadoop.fs.s3a.endpoint.region": region}
    if endpoint is None:
        return conf
    return {
        **conf,
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(endpoint.startswith("https:")).lower(),
    }


def of_run(folder: Path, endpoint: str, region: str, jars: Sequence[Path]) -> dict[str, str]:
    """All of them for a run of minutes on an emulated S3.

    Args:
        folder: of the run; exists.
        endpoint: URL of S3.
        region: of the buckets.
        jars: of the app's own packages.

    Raises:
        PenstockError: as `of_machine`.
    """
    scratch = folder.resolve() / "scratch"
    scratch.mkdir(exist_ok=True)
    return {
        **of_machine(scratch, jars),
        **of_s3(region, endpoint),
        "spark.driver.extraJavaOptions": f'{fast_start()} "-Djava.io.tmpdir={scratch}"',
        # Idleness is reported at once, because it marks the end of a run.
        "spark.sql.streaming.noDataProgressEventInterval": "0",
    }
