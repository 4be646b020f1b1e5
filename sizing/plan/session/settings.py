"""Which settings of Spark the jobs of a session share, and which each of them has for itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.sizing.plan.agreement import cpu_text
from penstock.sizing.plan.session.errors import SettingsDiffer
from penstock.sizing.planned import Pods
from penstock.sizing.spark_settings import RETAINED_STAGES_KEY
from penstock.sizing.violation import Violation, violated

# Settings of `spark.sql.` that a driver has once, which no Spark session can change. Source: Spark 4.3.0, SQLConf.isStaticConfigKey;
# a test compares the two.
STATIC_SQL = frozenset(
    f"spark.sql.{name}"
    for name in (
        "artifact.copyFromLocalToFs.allowDestLocal",
        "avro.schemaUrlAllowedSchemes",
        "broadcastExchange.maxThreadThreshold",
        "cache.serializer",
        "catalog.spark_catalog.defaultDatabase",
        "catalogImplementation",
        "codegen.cache.maxEntries",
        "codegen.comments",
        "connect.ui.retainedSessions",
        "connect.ui.retainedStatements",
        "debug",
        "defaultUrlStreamHandlerFactory.enabled",
        "event.truncate.length",
        "extensions",
        "extensions.test.loadFromCp",
        "filesourceTableRelationCacheSize",
        "globalTempDatabase",
        "hive.metastore.barrierPrefixes",
        "hive.metastore.jars",
        "hive.metastore.jars.path",
        "hive.metastore.sharedPrefixes",
        "hive.metastore.version",
        "hive.thriftServer.http.sniHostCheckEnabled",
        "hive.thriftServer.singleSession",
        "hive.version",
        "kafka.disallowedOptions",
        "legacy.hive.thriftServer.allowSettingSystemProperties",
        "legacy.sessionInitWithConfigDefaults",
        "metadataCacheTTLSeconds",
        "queryExecutionListeners",
        "reflect.allowList",
        "restrictedMode.enabled",
        "resultQueryStage.maxThreadThreshold",
        "shuffleExchange.maxThreadThreshold",
        "sources.disabledJdbcConnProviderList",
        "sources.schemaStringLengthThreshold",
        "streaming.streamingQueryListeners",
        "streaming.ui.enabled",
        "streaming.ui.enabledCustomMetricList",
        "streaming.ui.retainedProgressUpdates",
        "streaming.ui.retainedQueries",
        "subquery.maxThreadThreshold",
        "ui.retainedExecutions",
        "warehouse.dir",
    )
)
# A Spark session can set these, but an executor has one limit for all its stores: that of the first store that is opened. Source: Spark
# 4.3.0, RocksDBMemoryManager.
ROCKSDB_MEMORY = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"
ONCE_AN_EXECUTOR = frozenset(
    f"spark.sql.streaming.stateStore.rocksdb.{name}"
    for name in ("boundedMemoryUsage", "highPriorityPoolRatio", "strictCacheLimit", "writeBufferCacheRatio")
)
SCHEDULER = "spark.scheduler.mode"
EXECUTORS = "spark.executor.instances"
_OF_A_SESSION = ("spark.sql.", "spark.penstock.")
# What the plan of the session sets.
_DRIVER_LIMIT = "spark.kubernetes.driver.limit.cores"
_PLANNED = frozenset(
    {
        EXECUTORS,
        RETAINED_STAGES_KEY,
        "spark.driver.cores",
        "spark.driver.memory",
        "spark.driver.memoryOverhead",
        "spark.kubernetes.driver.request.cores",
        _DRIVER_LIMIT,
    }
)
# Of pods that differ, which is said in terms of pods.
_OF_EXECUTOR_PODS = frozenset(
    {"spark.executor.cores", "spark.executor.memory", "spark.executor.memoryOverhead", "spark.kubernetes.executor.request.cores"}
)
_NOT_SET = "not set"


class SessionSettings(NamedTuple):
    """The settings of a session.

    Args:
        shared: of its driver and executors.
        own: job -> of its Spark session.
        violations: SIZ-063.
    """

    shared: dict[str, str]
    own: dict[str, dict[str, str]]
    violations: list[Violation]


def is_own(key: str) -> bool:
    """Whether each Spark session has a value of its own."""
    return key.startswith(_OF_A_SESSION) and key not in STATIC_SQL


def session_settings(jobs: Mapping[str, Mapping[str, str]], pods: Pods, *, alike: bool) -> SessionSettings:
    """The settings of a session from those of its jobs.

    Args:
        jobs: job -> its settings.
        pods: of the session.
        alike: whether the jobs ask for the same executors.
    """
    shared, violations = _agreed(jobs, frozenset() if alike else _OF_EXECUTOR_PODS)
    memory = _largest_memory(jobs)
    own = {job: {**{key: value for key, value in conf.items() if is_own(key)}, **memory} for job, conf in jobs.items()}
    whole = {**shared, **_planned(jobs, pods), SCHEDULER: "FAIR"}
    return SessionSettings(dict(sorted(whole.items())), {job: dict(sorted(conf.items())) for job, conf in own.items()}, violations)


def _agreed(jobs: Mapping[str, Mapping[str, str]], reported: frozenset[str]) -> tuple[dict[str, str], list[Violation]]:
    """The settings that all jobs share, and SIZ-063 for each that differs."""
    given = {key for conf in jobs.values() for key in conf}
    agreed: dict[str, str] = {}
    violations: list[Violation] = []
    for key in sorted({key for key in given if not is_own(key)} - _PLANNED - reported):
        values = {job: conf.get(key) for job, conf in jobs.items()}
        if not _alike(key, values):
            violations.append(_differs(key, values))
        agreed[key] = next(value for value in values.values() if value is not None)
    for key in sorted(ONCE_AN_EXECUTOR & given):
        # A job without a state on RocksDB has none of its settings, and none that could differ.
        values = {job: conf[key] for job, conf in jobs.items() if key in conf}
        if not _alike(key, values):
            violations.append(_differs(key, values))
    return agreed, violations


def _alike(key: str, values: Mapping[str, str | None]) -> bool:
    return set(values.values()) == {"FAIR"} if key == SCHEDULER else len(set(values.values())) == 1


def _differs(key: str, values: Mapping[str, str | None]) -> Violation:
    first: dict[str | None, str] = {}
    for job, value in values.items():
        first.setdefault(value, job)
    given = ", ".join(f"{_NOT_SET if value is None else value} in {job}" for value, job in first.items())
    if key == SCHEDULER:
        need = "FAIR, or no value: the jobs of a session take turns"
        return violated(SettingsDiffer, path=key, given=given, need=need, fix="remove it from the jobs' sparkConf")
    need = "one value for all jobs of the session: they share a driver and executors"
    return violated(SettingsDiffer, path=key, given=given, need=need, fix="set it alike in the sparkConf of all jobs of the session")


def _largest_memory(jobs: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The memory of RocksDB: enough for the job that is planned with the most, as the jobs' states are spread over the sum of executors."""
    planned = [conf[ROCKSDB_MEMORY] for conf in jobs.values() if ROCKSDB_MEMORY in conf]
    return {ROCKSDB_MEMORY: max(planned, key=_whole)} if planned else {}


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _planned(jobs: Mapping[str, Mapping[str, str]], pods: Pods) -> dict[str, str]:
    """What follows from the session's pods, and the stages that the driver remembers: as few as any job allows."""
    driver = pods.driver
    kept = [_whole(conf[RETAINED_STAGES_KEY]) for conf in jobs.values() if RETAINED_STAGES_KEY in conf]
    limit = {} if driver.limit_cpu_millicores is None else {_DRIVER_LIMIT: cpu_text(driver.limit_cpu_millicores)}
    return {
        EXECUTORS: str(pods.executor.count),
        "spark.driver.cores": str(-(-driver.request_cpu_millicores // 1000)),
        "spark.driver.memory": f"{driver.heap_mib}m",
        "spark.driver.memoryOverhead": f"{driver.overhead_mib}m",
        "spark.kubernetes.driver.request.cores": cpu_text(driver.request_cpu_millicores),
        **({RETAINED_STAGES_KEY: str(min(kept))} if kept else {}),
        **limit,
    }
