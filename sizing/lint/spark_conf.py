"""Rules on Spark's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sizing.lint.fit import may_be_spot, pools_for
from penstock.sizing.lint.names import listed
from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.spark_keys import SPARK_VERSION, expected, likely, setting
from penstock.sizing.lint.subject import LintedConf, Subject

CHECKPOINT = "spark.sql.streaming.checkpointLocation"
CHECKPOINT_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
DECOMMISSION = "spark.decommission.enabled"
STORAGE_DECOMMISSION = "spark.storage.decommission.enabled"
GRACE = "spark.kubernetes.executor.terminationGracePeriodSeconds"
SPECULATION = "spark.speculation"
# Source: Spark 4.1.1, the default of spark.kubernetes.executor.terminationGracePeriodSeconds; EC2's spot notice.
DEFAULT_GRACE_S, SPOT_NOTICE_S = 30, 120
# A shorter period migrates at most the blocks of a small executor.
LEAST_GRACE_S = 60

_ELSEWHERE = {
    "spark.mesos.": "Mesos, which Spark dropped in 4.0",
    "spark.yarn.": "YARN",
    "spark.streaming.": "DStreams, the older streaming API: Structured Streaming does not read it",
}
# Source: Spark 4.3.0, CheckpointFileManager: these write to a temporary name and rename the file, which on S3 is a copy.
_RENAMING = ("FileContextBasedCheckpointFileManager", "FileSystemBasedCheckpointFileManager")
# jobs/jvm; jobs/driver/session.py sets it.
CONDITIONAL_MANAGER = "io.penstock.checkpoint.ConditionalCheckpointFileManager"
_SECRET = re.compile(r"(access|secret|session|account)[._-]?key$|authenticate\.secret$|password$|token$", re.IGNORECASE)
# Mount path of a Kubernetes secret, and the environment variable with its value.
_MOUNTED = re.compile(r"\.(secrets|secretKeyRef)\.")
_TIME_S = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


@rule(
    "LINT-030",
    "error",
    f"unknown Spark {SPARK_VERSION} setting",
    why="Spark silently ignores unknown settings: the intended effect does not happen",
    fix="correct the name, or remove the setting",
)
def unknown_setting(subject: Subject) -> Iterator[Fault]:
    """Source: the settings in Spark's own jars. Families (spark.hadoop. and the like) and those of well-known libraries are ignored."""
    for conf, key in _own_settings(subject):
        if setting(key) is None and not key.startswith(tuple(_ELSEWHERE)):
            close = likely(key)
            yield Fault(conf.place(key), conf.conf[key], f"a setting of Spark {SPARK_VERSION}", f"did you mean {close}?" if close else "")


@rule(
    "LINT-031",
    "error",
    "removed Spark setting",
    why="Spark ignores it, or fails to start if it differs from its last default",
    fix="remove it, or use its replacement",
)
def removed_setting(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, SQLConf.removedSQLConfigs."""
    for conf, key in _own_settings(subject):
        known = setting(key)
        if known is not None and known.kind == "removed":
            yield Fault(conf.place(key), conf.conf[key], known.note)


@rule(
    "LINT-032",
    "warning",
    "deprecated Spark setting",
    why="a later version of Spark may silently ignore it",
    fix="use its replacement",
)
def deprecated_setting(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, SparkConf.deprecatedConfigs and alternatives, SQLConf.deprecatedSQLConfigs."""
    for conf, key in _own_settings(subject):
        known = setting(key)
        if known is not None and known.kind != "removed" and known.note:
            yield Fault(conf.place(key), conf.conf[key], known.note, fix=f"use {known.note.split()[0]}" if known.kind == "renamed" else "")


@rule(
    "LINT-033",
    "error",
    "invalid value of a Spark setting",
    why="the driver fails with an exception when it reads the setting, at startup or later",
    fix="use a value of the right type",
)
def wrong_value(subject: Subject) -> Iterator[Fault]:
    """Source: the types and options of the settings in Spark 4.3.0's jars."""
    for conf, key in _own_settings(subject):
        known = setting(key)
        need = expected(known, conf.conf[key]) if known is not None else ""
        if need:
            yield Fault(conf.place(key), conf.conf[key], need)


@rule(
    "LINT-034",
    "warning",
    "setting has no effect",
    why="the setting has no effect on Structured Streaming on Kubernetes, and misleads readers",
    fix="remove it; to limit the read rate, use maxOffsetsPerTrigger of the source",
)
def setting_of_something_else(subject: Subject) -> Iterator[Fault]:
    """Source: Spark's configuration pages of YARN and of DStreams; Spark 4.0's release notes for Mesos."""
    for conf, key in _own_settings(subject):
        meant = next((what for start, what in _ELSEWHERE.items() if key.startswith(start)), "")
        renamed = setting(key)
        if meant and not (renamed is not None and renamed.note):
            yield Fault(conf.place(key), conf.conf[key], f"a setting for Kubernetes or Structured Streaming; this one is for {meant}")


@rule(
    "LINT-035",
    "warning",
    "setting without the prefix spark.",
    why="spark-submit ignores it with a warning, so it never reaches Hadoop, s3a or Kafka",
    fix="prefix Hadoop and s3a settings with spark.hadoop.; set Kafka options in the source",
)
def not_sparks(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.1.1, SparkSubmit: non-Spark config properties are ignored."""
    for conf in subject.confs:
        for key, value in conf.conf.items():
            if not key.startswith("spark."):
                hadoop = key.startswith(("fs.", "dfs.", "hadoop.", "mapreduce.", "hive."))
                yield Fault(conf.place(key), value, "spark.*", f"use spark.hadoop.{key}" if hadoop else "")


@rule(
    "LINT-036",
    "warning",
    "spot executors without decommissioning",
    why="on a spot interruption, the executor's tasks fail and its shuffle files must be recomputed",
    fix=f"{DECOMMISSION}: true, with {STORAGE_DECOMMISSION}: true for shuffle files and cached blocks",
)
def no_decommission(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.1.1: spark.decommission.enabled is off by default; EC2's spot notice is two minutes."""
    for conf in subject.confs:
        pools = _spot_pools(subject, conf)
        if pools and not conf.is_on(DECOMMISSION):
            given = f"{conf.name}: {DECOMMISSION} {conf.get(DECOMMISSION) or 'false, its default'}"
            yield Fault(conf.place(DECOMMISSION), given, f"true: its executors may be spot in {listed(pools)}")


@rule(
    "LINT-037",
    "warning",
    "grace period too short for decommissioning",
    why="Kubernetes kills the pod at the end of its grace period, even if the spot notice allows more time: its blocks are lost",
    fix=f'{GRACE}: "110s", within the two minutes of a spot notice',
)
def short_grace(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.1.1, the default of 30 s; EC2, two minutes' notice."""
    for conf in subject.confs:
        if conf.is_on(DECOMMISSION) and conf.is_on(STORAGE_DECOMMISSION) and _spot_pools(subject, conf):
            grace_s = _seconds(conf.get(GRACE) or f"{DEFAULT_GRACE_S}s")
            if grace_s is not None and grace_s < LEAST_GRACE_S:
                given = conf.get(GRACE) or f"{DEFAULT_GRACE_S} s, its default"
                yield Fault(conf.place(GRACE, DECOMMISSION), f"{GRACE} {given}", f"{LEAST_GRACE_S} to {SPOT_NOTICE_S} s")


@rule(
    "LINT-038",
    "error",
    "checkpoint not on s3a",
    why="a node's disk is lost with the node, and s3:// has no file system implementation: the query starts from scratch or fails",
    fix="remove it to use the environment's bucket, or use s3a://BUCKET/FOLDER",
)
def checkpoint_elsewhere(subject: Subject) -> Iterator[Fault]:
    """Source: hadoop-aws 3.5.0 has only s3a; a checkpoint must outlive every node."""
    for conf in subject.confs:
        location = conf.conf.get(CHECKPOINT)
        if location is not None and not location.startswith("s3a://"):
            yield Fault(conf.place(CHECKPOINT), location, "s3a://...")


@rule(
    "LINT-039",
    "warning",
    "rename-based checkpoint manager",
    why="S3 has no atomic rename: each checkpoint file is written twice, which doubles the requests and slows down every batch",
    fix="remove it to use Penstock's, which writes each file with one request",
)
def renaming_checkpoints(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, CheckpointFileManager; spark-hadoop-cloud, AbortableStreamBasedCheckpointFileManager."""
    for conf in subject.confs:
        manager = conf.conf.get(CHECKPOINT_MANAGER, "")
        if manager.endswith(_RENAMING):
            yield Fault(conf.place(CHECKPOINT_MANAGER), manager.rsplit(".", 1)[-1], CONDITIONAL_MANAGER)


@rule(
    "LINT-042",
    "warning",
    "checkpoint manager without conditional writes",
    why="two drivers of one job can both write offsets/N and commits/N: rows are lost or duplicated",
    fix="remove it to use Penstock's, which creates them with If-None-Match",
)
def unconditional_checkpoints(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, CheckpointFileManager; spark-hadoop-cloud 4.1.2: none of their managers creates a file conditionally."""
    for conf in subject.confs:
        manager = conf.conf.get(CHECKPOINT_MANAGER, CONDITIONAL_MANAGER)
        if manager != CONDITIONAL_MANAGER:
            yield Fault(conf.place(CHECKPOINT_MANAGER), manager.rsplit(".", 1)[-1], CONDITIONAL_MANAGER)


@rule(
    "LINT-040",
    "error",
    "secret in plain text",
    why="the secret is visible in the repository, the driver's arguments and the Spark UI",
    fix="use EKS Pod Identity for AWS, mounted secrets for others; and rotate the exposed secret",
)
def secret_in_settings(subject: Subject) -> Iterator[Fault]:
    """Source: Spark's security page; names of secrets in Hadoop's and Spark's settings."""
    for conf in subject.confs:
        for key, value in conf.conf.items():
            if _SECRET.search(key) and not _MOUNTED.search(key) and value.strip() and not value.startswith("${"):
                yield Fault(conf.place(key), f"{len(value)} characters, not shown", "no secret")


@rule(
    "LINT-041",
    "warning",
    "speculation enabled",
    why="speculative tasks write twice to sinks that are not idempotent, and occupy slots that a stream needs",
    fix="remove it",
)
def speculation(subject: Subject) -> Iterator[Fault]:
    """Source: Spark's configuration page, spark.speculation; s3a committers warn of the same."""
    for conf in subject.confs:
        if conf.is_on(SPECULATION):
            yield Fault(conf.place(SPECULATION), f"{SPECULATION} true", "false")


def _own_settings(subject: Subject) -> Iterator[tuple[LintedConf, str]]:
    for conf in subject.confs:
        for key in conf.conf:
            if key.startswith("spark."):
                yield conf, key


def _spot_pools(subject: Subject, conf: LintedConf) -> list[str]:
    """The pools in which the executors of an application may run on spot."""
    if conf.executor is None:
        return []
    executor = conf.executor
    return [pool.name for pool in pools_for(subject, executor) if may_be_spot(subject, executor, pool.pool)]


def _seconds(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]+)(us|ms|s|m|min|h|d)?", text.strip().lower())
    return int(match.group(1)) * _TIME_S[match.group(2) or ""] if match else None
