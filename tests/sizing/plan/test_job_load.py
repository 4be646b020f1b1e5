"""A job's load in its environment."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.kafka.errors import UnknownBrokerType
from penstock.sizing.load.load import Load
from penstock.sizing.plan import plan
from penstock.sizing.plan.job_load import in_environment
from penstock.sizing.targets import Parallelism, Targets
from tests.sizing.clusters import LOAD, PRODUCTION, codes, targets, with_kafka, with_quotas

WANTED = targets(load=LOAD, source_topics={"a": None})


def test_the_environments_retention_and_replication_hold_only_where_the_spec_leaves_them_out() -> None:
    kafka = with_kafka(retention_h=72.0, replication=2).kafka
    result = in_environment(LOAD, kafka)
    assert (result.retention_h, result.replication) == (72.0, 2)
    own = Load(events_per_s=1.0, event_bytes=1, events_per_slot_per_s=1.0, retention_h=24.0)
    result = in_environment(own, kafka)
    assert (result.retention_h, result.replication) == (24.0, 2)
    own = Load(events_per_s=1.0, event_bytes=1, events_per_slot_per_s=1.0, replication=3)
    assert (in_environment(own, kafka).retention_h, in_environment(own, kafka).replication) == (72.0, 3)


def test_without_kafka_the_load_stays_as_it_is() -> None:
    assert in_environment(LOAD, None) is LOAD


def test_twice_the_retention_is_twice_the_storage() -> None:
    stored = []
    for hours in (24.0, 48.0):
        kafka = plan(WANTED, with_kafka(retention_h=hours)).kafka.load
        assert kafka is not None
        assert kafka.cluster is not None
        assert kafka.retention_h == hours
        stored.append(kafka.cluster.storage.ebs_gib)
    assert stored[1] == pytest.approx(2 * stored[0])


@pytest.mark.parametrize("kind", ["standard", "express"])
def test_the_kind_of_the_environment_decides_on_the_brokers(kind: str) -> None:
    kafka = plan(WANTED, with_kafka(kind=kind)).kafka.load
    assert kafka is not None
    assert kafka.cluster is not None
    assert (kafka.cluster.kind, kafka.serverless) == (kind, None)


def test_serverless_has_no_brokers_and_external_has_nothing() -> None:
    serverless = plan(WANTED, with_kafka(kind="serverless")).kafka.load
    assert serverless is not None
    assert serverless.cluster is None
    assert serverless.serverless is not None
    for result in (with_kafka(kind="external"), PRODUCTION.model_copy(update={"kafka": None})):
        bare = plan(WANTED, result).kafka.load
        assert bare is not None
        assert (bare.cluster, bare.serverless) == (None, None)


def test_too_few_fixed_brokers_are_a_violation_and_those_that_it_names_are_not() -> None:
    heavy = targets(load=LOAD.model_copy(update={"events_per_s": 100_000.0, "events_per_slot_per_s": 10_000.0}), source_topics={"a": None})
    small = plan(heavy, with_kafka(broker_type="kafka.m7g.large", brokers=3))
    assert "SIZ-041" in codes(small)
    needed = next(int(str(one.fix).split("brokers: ")[1].split(",")[0]) for one in small.violations if one.code == "SIZ-041")
    assert "SIZ-041" not in codes(plan(heavy, with_kafka(broker_type="kafka.m7g.large", brokers=needed)))
    assert "SIZ-041" in codes(plan(heavy, with_kafka(broker_type="kafka.m7g.large", brokers=needed - 1)))


def test_an_unknown_broker_type_is_a_coded_error() -> None:
    with pytest.raises(UnknownBrokerType):
        plan(WANTED, with_kafka(broker_type="kafka.z9.huge"))


def test_a_quota_of_brokers_never_makes_a_traceback() -> None:
    for quota in (0, 1, 2, 3, 1000):
        result = plan(WANTED, with_quotas(msk_brokers=quota))
        assert ("SIZ-011" in codes(result)) == (quota < 3)


STATEFUL = LOAD.model_copy(update={"stateful_operators": ("other",)})
ROCKSDB_LIMIT = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"


def test_rocksdb_may_take_what_the_executors_overhead_has_for_it() -> None:
    planned = plan(targets(load=STATEFUL))
    assert planned.spark_conf[ROCKSDB_LIMIT] == str(planned.executor_overhead.rocksdb_mib)
    assert planned.executor_overhead.rocksdb_mib > 0


@pytest.mark.parametrize(
    ("update", "limit"),
    [
        ({"spark_conf": {ROCKSDB_LIMIT: "300"}}, "300"),
        ({"spark_conf": {"spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "false"}}, None),
        ({"state_backend": "memory"}, None),
        ({"load": LOAD}, None),
    ],
)
def test_a_spec_a_backend_or_a_job_without_state_may_leave_rocksdb_another_limit(update: dict[str, Any], limit: str | None) -> None:
    assert plan(targets(**{"load": STATEFUL, **update})).spark_conf.get(ROCKSDB_LIMIT) == limit


def _on_shuffles(wanted: Targets) -> list[str]:
    return [note for note in plan(wanted).notes if "shuffle partitions" in note]


def test_a_parallelism_of_state_that_would_change_with_the_load_is_noted() -> None:
    (note,) = _on_shuffles(targets(14, load=STATEFUL))
    assert note.startswith("the state of a new job gets 14 shuffle partitions, and keeps them when the load changes")
    assert note.endswith("stages.stateful: 14 states that in the spec")


def test_it_is_not_noted_without_state_or_where_the_spec_has_the_number() -> None:
    assert _on_shuffles(targets(14, load=LOAD)) == []
    given = Parallelism(value=14, source="spec")
    assert _on_shuffles(targets(14, load=STATEFUL).model_copy(update={"parallelism": given})) == []
    assert _on_shuffles(targets(14, load=STATEFUL, spark_conf={"spark.sql.shuffle.partitions": "14"})) == []
