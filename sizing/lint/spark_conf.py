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
# Less than this moves the blocks of a small executor at most.
LEAST_GRACE_S = 60

_ELSEWHERE = {
    "spark.mesos.": "Mesos, which Spark dropped in 4.0",
    "spark.yarn.": "YARN",
    "spark.streaming.": "DStreams, the older streaming API: Structured Streaming does not read it",
}
# Source: Spark 4.3.0, CheckpointFileManager: these write a file under another name and rename it, which on S3 is a copy.
_RENAMING = ("FileContextBasedCheckpointFileManager", "FileSystemBasedCheckpointFileManager")
_SECRET = re.compile(r"(access|secret|session|account)[._-]?key$|authenticate\.secret$|password$|token$", re.IGNORECASE)
# Where a secret of Kubernetes is mounted, and under which name its value is found.
_MOUNTED = re.compile(r"\.(secrets|secretKeyRef)\.")
_TIME_S = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


@rule(
    "LINT-030",
    "error",
    f"Spark {SPARK_VERSION} has no such setting",
    why="Spark ignores a setting that it does not know without a word: what was meant does not happen",
    fix="write the name that Spark has, or take it out",
)
def unknown_setting(subject: Subject) -> Iterator[Fault]:
    """Source: the settings in Spark's own jars. Families (spark.hadoop. and the like) and those of well-known libraries are left alone."""
    for conf, key in _own_settings(subject):
        if setting(key) is None and not key.startswith(tuple(_ELSEWHERE)):
            close = likely(key)
            yield Fault(conf.place(key), conf.conf[key], f"a setting of Spark {SPARK_VERSION}", f"did you mean {close}?" if close else "")


@rule(
    "LINT-031",
    "error",
    "Spark has removed this setting",
    why="Spark ignores it, or refuses to start where it is set to something else than its last default",
    fix="take it out, or use what replaces it",
)
def removed_setting(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, SQLConf.removedSQLConfigs."""
    for conf, key in _own_settings(subject):
        found = setting(key)
        if found is not None and found.kind == "removed":
            yield Fault(conf.place(key), conf.conf[key], found.note)


@rule(
    "LINT-032",
    "warning",
    "this setting is deprecated",
    why="the next version of Spark may no longer read it, and then ignores it without a word",
    fix="use what replaces it",
)
def deprecated_setting(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, SparkConf.deprecatedConfigs and alternatives, SQLConf.deprecatedSQLConfigs."""
    for conf, key in _own_settings(subject):
        found = setting(key)
        if found is not None and found.kind != "removed" and found.note:
            yield Fault(
                conf.place(key), conf.conf[key], found.note, fix=f"write {found.note.split()[0]}" if found.kind == "renamed" else ""
            )


@rule(
    "LINT-033",
    "error",
    "Spark would refuse the value of this setting",
    why="the driver ends with an exception when it reads the setting, at the start or, worse, later",
    fix="write a value of the right kind",
)
def wrong_value(subject: Subject) -> Iterator[Fault]:
    """Source: the types and options of the settings in Spark 4.3.0's jars."""
    for conf, key in _own_settings(subject):
        found = setting(key)
        need = expected(found, conf.conf[key]) if found is not None else ""
        if need:
            yield Fault(conf.place(key), conf.conf[key], need)


@rule(
    "LINT-034",
    "warning",
    "this setting is for something else",
    why="it has no effect on Structured Streaming on Kubernetes, and whoever reads it believes that it has",
    fix="take it out; where it limits what is read, maxOffsetsPerTrigger of the source does so here",
)
def setting_of_something_else(subject: Subject) -> Iterator[Fault]:
    """Source: Spark's configuration pages of YARN and of DStreams; Spark 4.0's release notes for Mesos."""
    for conf, key in _own_settings(subject):
        meant = next((what for start, what in _ELSEWHERE.items() if key.startswith(start)), "")
        renamed = setting(key)
        if meant and not (renamed is not None and renamed.note):
            yield Fault(conf.place(key), conf.conf[key], f"a setting for Kubernetes and Structured Streaming; this is one of {meant}")


@rule(
    "LINT-035",
    "warning",
    "this setting does not begin with spark.",
    why="spark-submit drops it with a warning, so that Hadoop, s3a and Kafka never see it",
    fix="put spark.hadoop. before a setting of Hadoop or s3a; options of Kafka belong to the source",
)
def not_sparks(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.1.1, SparkSubmit: non-Spark config properties are ignored."""
    for conf in subject.confs:
        for key, value in conf.conf.items():
            if not key.startswith("spark."):
                hadoop = key.startswith(("fs.", "dfs.", "hadoop.", "mapreduce.", "hive."))
                yield Fault(conf.place(key), value, "spark.*", f"write spark.hadoop.{key}" if hadoop else "")


@rule(
    "LINT-036",
    "warning",
    "executors on spot leave without decommissioning",
    why="on a spot interruption the executor just goes: its tasks fail and its shuffle files are computed again",
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
    "an executor that drains has no time to do so",
    why="Kubernetes kills the pod when its grace period is over, whatever the spot notice still gives: the blocks on it are lost",
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
    "the checkpoint is not on s3a",
    why="on a node's disk it is gone with the node, and s3:// has no file system here: the query starts from nothing, or not at all",
    fix="take it out: the environment's bucket is used; or s3a://BUCKET/FOLDER",
)
def checkpoint_elsewhere(subject: Subject) -> Iterator[Fault]:
    """Source: hadoop-aws 3.5.0 has s3a alone; a checkpoint must outlive every node."""
    for conf in subject.confs:
        location = conf.conf.get(CHECKPOINT)
        if location is not None and not location.startswith("s3a://"):
            yield Fault(conf.place(CHECKPOINT), location, "s3a://...")


@rule(
    "LINT-039",
    "warning",
    "the checkpoint is written by renames",
    why="S3 has no rename: each file of a checkpoint is written twice, which doubles the requests and slows every batch",
    fix="take it out: the abortable manager of spark-hadoop-cloud is used",
)
def renaming_checkpoints(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, CheckpointFileManager; spark-hadoop-cloud, AbortableStreamBasedCheckpointFileManager."""
    for conf in subject.confs:
        manager = conf.conf.get(CHECKPOINT_MANAGER, "")
        if manager.endswith(_RENAMING):
            yield Fault(conf.place(CHECKPOINT_MANAGER), manager.rsplit(".", 1)[-1], "AbortableStreamBasedCheckpointFileManager")


@rule(
    "LINT-040",
    "error",
    "a secret stands in the settings",
    why="it is in the repository, in the driver's arguments and on Spark's web page",
    fix="EKS Pod Identity for AWS, a mounted secret for others; and change the secret, it is known now",
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
    "speculation is on",
    why="a task that runs twice writes twice to what is not idempotent, and takes slots that a stream has no spare of",
    fix="take it out",
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
    """The pools in which the executors of an application may be spot."""
    if conf.executor is None:
        return []
    executor = conf.executor
    return [pool.name for pool in pools_for(subject, executor) if may_be_spot(subject, executor, pool.pool)]


def _seconds(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]+)(us|ms|s|m|min|h|d)?", text.strip().lower())
    return int(match.group(1)) * _TIME_S[match.group(2) or ""] if match else None
