"""Rules on Spark's settings."""

from __future__ import annotations

import pytest

from penstock.sizing.lint.spark_conf import CONDITIONAL_MANAGER
from penstock.sizing.lint.subject import LintedConf
from tests.sizing.lint.worlds import BOTH, CATEGORY, ON_DEMAND, SPOT, found, needs, pods, pool, setting, subject

M = needs(CATEGORY, "In", "m")
DECOMMISSION, STORAGE = "spark.decommission.enabled", "spark.storage.decommission.enabled"
GRACE = "spark.kubernetes.executor.terminationGracePeriodSeconds"


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("spark.executor.decommission.enabled", "did you mean spark.decommission.enabled?"),
        ("spark.sql.shuffle.partitons", "did you mean spark.sql.shuffle.partitions?"),
        ("spark.executor.memoryoverhead", "did you mean spark.executor.memoryOverhead?"),
        ("spark.kubernetes.executor.cores", "did you mean spark.kubernetes.executor.request.cores?"),
        ("spark.sql.streaming.stateStore.rocksdb.boundedMemory", "did you mean"),
        ("spark.kubernetes.executor.tolerations", "did you mean the tolerations of the environment"),
        ("spark.nothing.of.the.kind", "correct the name, or remove the setting"),
    ],
)
def test_a_setting_that_spark_does_not_have_is_found_with_the_one_that_was_meant(key: str, fix: str) -> None:
    (finding,) = found("LINT-030", setting(key, "1"))
    assert finding.severity == "error"
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    "key",
    [
        "spark.decommission.enabled",
        "spark.executor.memory",
        "spark.master",
        "spark.app.name",
        "spark.submit.deployMode",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.kubernetes.driver.annotation.karpenter.sh/do-not-disrupt",
        "spark.kubernetes.executor.node.selector.karpenter.sh/capacity-type",
        "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.mount.path",
        "spark.kubernetes.authenticate.driver.serviceAccountName",
        "spark.kubernetes.driver.secretKeyRef.TOKEN",
        "spark.executorEnv.PYTHONPATH",
        "spark.executor.resource.gpu.amount",
        "spark.sql.catalog.prod",
        "spark.sql.catalog.prod.type",
        "spark.sql.iceberg.handle-timestamp-without-timezone",
        "spark.databricks.delta.retentionDurationCheck.enabled",
        "spark.metrics.conf.*.sink.prometheus.class",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage",
        "spark.sql.streaming.stateStore.rocksdb.boundedmemoryusage",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.shuffle.io.maxRetries",
        "spark.ssl.enabled",
        "spark.kafka.consumer.cache.capacity",
        "spark.yarn.queue",
        "spark.mesos.coarse",
    ],
)
def test_a_setting_that_spark_has_or_that_is_composed_is_left_alone(key: str) -> None:
    assert found("LINT-030", setting(key, "1")) == []


def test_a_removed_setting_is_found_with_what_spark_says_of_it() -> None:
    (finding,) = found("LINT-031", setting("spark.sql.hive.verifyPartitionPath", "true"))
    assert finding.need.startswith("removed in 4.0.0: This config was replaced by 'spark.sql.files.ignoreMissingFiles'")
    assert found("LINT-030", setting("spark.sql.hive.verifyPartitionPath", "true")) == []
    assert found("LINT-031", setting("spark.sql.files.ignoreMissingFiles", "true")) == []


def test_a_renamed_setting_is_found_with_its_new_name() -> None:
    (finding,) = found("LINT-032", setting("spark.yarn.executor.memoryOverhead", "1g"))
    assert (finding.severity, finding.fix) == ("warning", "use spark.executor.memoryOverhead")
    assert found("LINT-034", setting("spark.yarn.executor.memoryOverhead", "1g")) == [], "one finding for one fault"


def test_a_deprecated_setting_is_found() -> None:
    (finding,) = found("LINT-032", setting("spark.sql.execution.arrow.enabled", "true"))
    assert finding.need.startswith("deprecated in 3.0")
    assert found("LINT-032", setting("spark.sql.execution.arrow.pyspark.enabled", "true")) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.adaptive.enabled", "yes"),
        ("spark.task.maxFailures", "4.5"),
        ("spark.task.maxFailures", "3000000000"),
        ("spark.memory.fraction", "60%"),
        ("spark.driver.maxResultSize", "1.5g"),
        ("spark.driver.maxResultSize", "4 GB"),
        ("spark.network.timeout", "2 minutes"),
        ("spark.network.timeout", "120sec"),
        ("spark.scheduler.mode", "ROUND_ROBIN"),
        ("spark.kubernetes.container.image.pullPolicy", "always"),
    ],
)
def test_a_value_of_the_wrong_kind_is_found(key: str, value: str) -> None:
    assert [finding.given for finding in found("LINT-033", setting(key, value))] == [value]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.adaptive.enabled", "True"),
        ("spark.task.maxFailures", "8"),
        ("spark.memory.fraction", "0.7"),
        ("spark.memory.fraction", "1e-1"),
        ("spark.driver.maxResultSize", "2G"),
        ("spark.driver.maxResultSize", "2gib"),
        ("spark.network.timeout", "120s"),
        ("spark.network.timeout", "120"),
        ("spark.scheduler.mode", "fair"),
        ("spark.kubernetes.container.image.pullPolicy", "Always"),
        ("spark.executor.memory", "${spark.driver.memory}"),
        ("spark.executor.extraJavaOptions", "-XX:+UseG1GC"),
    ],
)
def test_a_value_of_the_right_kind_is_left_alone(key: str, value: str) -> None:
    assert found("LINT-033", setting(key, value)) == []


@pytest.mark.parametrize(
    "key", ["spark.yarn.queue", "spark.mesos.coarse", "spark.streaming.backpressure.enabled", "spark.streaming.kafka.maxRatePerPartition"]
)
def test_a_setting_of_another_engine_is_found(key: str) -> None:
    assert len(found("LINT-034", setting(key, "1"))) == 1
    assert found("LINT-034", setting("spark.sql.streaming.metricsEnabled", "true")) == []


def test_a_setting_without_sparks_beginning_is_found() -> None:
    (finding,) = found("LINT-035", setting("fs.s3a.endpoint", "x"))
    assert finding.fix == "use spark.hadoop.fs.s3a.endpoint"
    assert found("LINT-035", setting("spark.hadoop.fs.s3a.endpoint", "x")) == []


def test_executors_on_spot_without_decommissioning_are_found() -> None:
    executor = pods()
    for pools, settings, fires in [
        ((pool("p", M, SPOT),), {}, True),
        ((pool("p", M, BOTH),), {DECOMMISSION: "false"}, True),
        ((pool("p", M, SPOT),), {DECOMMISSION: "true"}, False),
        ((pool("p", M, ON_DEMAND),), {}, False),
        ((), {}, False),
    ]:
        linted = subject(pools=pools, confs=(LintedConf(name="job", conf=settings, executor=executor),))
        assert bool(found("LINT-036", linted)) is fires


def test_a_grace_period_that_ends_before_the_drain_is_found() -> None:
    pools = (pool("p", M, SPOT),)
    both = {DECOMMISSION: "true", STORAGE: "true"}
    for settings, fires in [
        (both, True),
        ({**both, GRACE: "45s"}, True),
        ({**both, GRACE: "110s"}, False),
        ({**both, GRACE: "2m"}, False),
        ({DECOMMISSION: "true"}, False),
    ]:
        linted = subject(pools=pools, confs=(LintedConf(name="job", conf=settings, executor=pods()),))
        assert bool(found("LINT-037", linted)) is fires


@pytest.mark.parametrize(
    ("location", "fires"), [("/tmp/c", True), ("s3://b/c", True), ("file:///c", True), ("hdfs://c", True), ("s3a://b/c", False)]
)
def test_a_checkpoint_that_is_not_on_s3a_is_found(location: str, fires: bool) -> None:
    assert bool(found("LINT-038", setting("spark.sql.streaming.checkpointLocation", location))) is fires
    assert found("LINT-038", subject(confs=(LintedConf(name="job", conf={}),))) == []


def test_a_checkpoint_manager_that_renames_is_found() -> None:
    package = "org.apache.spark.sql.execution.streaming.checkpointing."
    key = "spark.sql.streaming.checkpointFileManagerClass"
    assert len(found("LINT-039", setting(key, f"{package}FileContextBasedCheckpointFileManager"))) == 1
    assert found("LINT-039", setting(key, "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager")) == []


def test_a_checkpoint_manager_that_writes_without_a_condition_is_found() -> None:
    key = "spark.sql.streaming.checkpointFileManagerClass"
    assert len(found("LINT-042", setting(key, "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"))) == 1
    assert found("LINT-042", setting(key, CONDITIONAL_MANAGER)) == []
    assert found("LINT-042", subject(confs=(LintedConf(name="job", conf={}),))) == []


@pytest.mark.parametrize(
    "key",
    ["spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.session.token", "spark.ssl.keyStorePassword", "spark.authenticate.secret"],
)
def test_a_secret_is_found_and_not_shown(key: str) -> None:
    (finding,) = found("LINT-040", setting(key, "hunter2hunter2"))
    assert "hunter2" not in finding.model_dump_json()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "x"),
        ("spark.kubernetes.driver.secrets.token", "/etc/secret"),
        ("spark.kubernetes.driver.secretKeyRef.PASSWORD", "store:password"),
        ("spark.hadoop.fs.s3a.secret.key", ""),
        ("spark.authenticate.secret.file", "/etc/secret"),
    ],
)
def test_where_a_secret_lies_is_none(key: str, value: str) -> None:
    assert found("LINT-040", setting(key, value)) == []


def test_speculation_is_found() -> None:
    assert len(found("LINT-041", setting("spark.speculation", "true"))) == 1
    assert found("LINT-041", setting("spark.speculation", "false")) == []
