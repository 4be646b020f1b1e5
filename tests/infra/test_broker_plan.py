"""The brokers of an environment's jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.broker_plan import BrokerPlan, broker_plan, fewer_brokers, refuse_fewer_brokers
from penstock.infra.environment import Environment
from penstock.infra.errors import FewerBrokers
from penstock.infra.plans import plans
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read

LOAD = {"eventsPerSecond": 100_000, "eventBytes": 1000, "eventsPerSlot": 12_000, "peakFactor": 2, "retention": "72h"}
JOB: dict[str, Any] = {
    "apiVersion": "penstock/v1",
    "kind": "StreamingJob",
    "metadata": {"name": "clicks"},
    "spec": {"app": "app", "executor": {"slots": 4}, "sources": {"a": {"kafka": {"topic": "clicks"}}}},
}

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"


def of(folder: Path, kafka: dict[str, Any] | None = None, *, zones: int = 3, **job: Any) -> Environment:
    """The production environment with one job."""
    (folder / "app.py").write_text("")
    document = {**JOB, "spec": {**JOB["spec"], **job}}
    (folder / "clicks.yaml").write_text(yaml.safe_dump(document))

    def change(spec: dict[str, Any]) -> None:
        spec["jobs"] = ["clicks.yaml"]
        spec["kafka"] = kafka or {"kind": "standard"}
        spec["network"].update(zones=[f"us-east-1{zone}" for zone in "abc"[:zones]], natGateways=1)

    return read(folder, change)


def planned(environment: Environment) -> BrokerPlan:
    assert environment.spec.kafka is not None
    return broker_plan(environment, environment.spec.kafka, plans(environment))


def test_without_a_load_there_is_the_least_that_survives_a_lost_broker(tmp_path: Path) -> None:
    environment = of(tmp_path, parallelism=4, executor={"slots": 4, "memory": "16g"})
    assert planned(environment) == BrokerPlan("kafka.m7g.large", 3, 3, 100, 400, 0)


def test_with_a_load_brokers_and_storage_are_the_plans(tmp_path: Path) -> None:
    environment = of(tmp_path, load=LOAD)
    together = plans(environment).together
    assert together is not None and together.kafka is not None and together.kafka.cluster is not None
    option, brokers = together.kafka.cluster, planned(environment)
    assert (brokers.broker_type, brokers.brokers) == (option.broker_type, option.brokers)
    assert brokers.brokers * (brokers.storage_gib or 0) >= option.storage.ebs_gib > (brokers.brokers * ((brokers.storage_gib or 0) - 1))


def test_a_larger_load_has_more_brokers_or_larger_ones(tmp_path: Path) -> None:
    small = planned(of(tmp_path, {"kind": "standard", "brokerType": "kafka.m7g.large"}, load=LOAD))
    large = planned(of(tmp_path, {"kind": "standard", "brokerType": "kafka.m7g.large"}, load={**LOAD, "eventsPerSecond": 150_000}))
    assert large.brokers > small.brokers


def test_many_partitions_need_more_brokers_even_without_a_load(tmp_path: Path) -> None:
    kafka = {"kind": "standard", "brokerType": "kafka.m7g.large"}
    few = of(tmp_path, kafka, parallelism=4, executor={"slots": 4, "memory": "16g"})
    assert planned(few).brokers == 3
    many = of(
        tmp_path,
        kafka,
        parallelism=4,
        executor={"slots": 4, "memory": "16g"},
        sources={"a": {"kafka": {"topic": "clicks", "partitions": 4000}}},
    )
    assert planned(many).brokers == 12


def test_express_brokers_have_no_volumes(tmp_path: Path) -> None:
    express = planned(of(tmp_path, {"kind": "express"}, parallelism=4, executor={"slots": 4, "memory": "16g"}))
    assert express == BrokerPlan("express.m7g.large", 3, 3, None, None, 0)


def test_two_zones_have_an_even_number_of_brokers(tmp_path: Path) -> None:
    assert planned(of(tmp_path, zones=2, parallelism=4, executor={"slots": 4, "memory": "16g"})).brokers == 4


def test_the_environments_own_numbers_win(tmp_path: Path) -> None:
    kafka = {"kind": "standard", "brokerType": "kafka.t3.small", "brokers": 6, "storageGib": 10, "maxStorageGib": 50}
    assert planned(of(tmp_path, kafka, parallelism=4, executor={"slots": 4, "memory": "16g"})) == BrokerPlan(
        "kafka.t3.small", 6, 3, 10, 50, 0
    )


@pytest.mark.parametrize(
    ("kafka", "zones", "code"),
    [
        ({"kind": "standard", "brokers": 4}, 3, "INF-041"),
        ({"kind": "express"}, 2, "INF-040"),
        ({"kind": "standard", "brokerType": "kafka.x9.large"}, 3, "SIZ-042"),
    ],
)
def test_brokers_that_msk_would_refuse_are_refused_at_once(tmp_path: Path, kafka: dict[str, Any], zones: int, code: str) -> None:
    environment = of(tmp_path, kafka, zones=zones, parallelism=4, executor={"slots": 4, "memory": "16g"})
    with pytest.raises(PenstockError) as raised:
        planned(environment)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("kafka", "words"),
    [
        ({"kind": "express", "brokerType": "kafka.m7g.large"}, "starting with express."),
        ({"kind": "standard", "security": "tls"}, "only with kind: external"),
        ({"kind": "serverless", "bootstrapServers": "b:1"}, "only with kind: external"),
        ({"kind": "standard", "secret": SECRET}, "secret only with"),
        ({"kind": "external", "security": "sasl-scram"}, "secret with security: sasl-scram, sasl-plain or mtls"),
        ({"kind": "external", "security": "tls", "secret": SECRET}, "and only with them"),
        ({"kind": "external", "security": "tls", "key": "arn:aws:kms:us-east-1:111122223333:key/a"}, "key together with secret"),
        ({"kind": "standard", "storageGib": 100, "maxStorageGib": 50}, "can only grow"),
    ],
)
def test_what_can_not_be_of_a_kafka_is_a_fault_of_the_file(tmp_path: Path, kafka: dict[str, Any], words: str) -> None:
    with pytest.raises(PenstockError) as raised:
        of(tmp_path, kafka, parallelism=4, executor={"slots": 4, "memory": "16g"})
    assert (raised.value.code, words in raised.value.need) == ("SPEC-006", True)


def test_fewer_brokers_are_refused_and_as_many_or_more_are_not() -> None:
    refuse_fewer_brokers(3, 3)
    refuse_fewer_brokers(3, 6)
    with pytest.raises(FewerBrokers) as raised:
        refuse_fewer_brokers(6, 3)
    assert (raised.value.code, raised.value.exit_code, raised.value.given) == ("INF-042", 1, "3")
    assert "kafka.brokers: 6" in raised.value.fix


def _change(before: int | None, after: int | None, kind: str = "aws_msk_cluster") -> dict[str, Any]:
    sides = {side: None if count is None else {"number_of_broker_nodes": count} for side, count in (("before", before), ("after", after))}
    return {"type": kind, "change": sides}


def test_a_plan_of_terraforms_is_looked_through_for_fewer_brokers() -> None:
    changes = [_change(3, 6), _change(None, 3), _change(6, None), _change(9, 6), _change(9, 6, "aws_other")]
    assert [fault.given for fault in fewer_brokers({"resource_changes": changes})] == ["6"]
    assert fewer_brokers({}) == []
