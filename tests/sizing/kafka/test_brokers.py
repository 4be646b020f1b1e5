"""Brokers for a load: MSK standard, Express and serverless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.kafka.broker_types import broker_type, broker_types
from penstock.sizing.kafka.brokers import KafkaOption, Kind, cheapest, cluster_violations, ingress_mibps_per_broker, option_of, options
from penstock.sizing.kafka.demand import KafkaDemand, storage
from penstock.sizing.kafka.errors import KafkaOutOfReach, UnknownBrokerType
from penstock.sizing.kafka.serverless import ServerlessLimits, serverless_use
from tests.sizing.load_cases import case

STANDARD = KafkaDemand(peak_in_mibps=100.0, peak_out_mibps=200.0, average_in_mibps=60.0, partitions=200)


def of_case(name: str) -> tuple[KafkaDemand, dict[str, dict[str, float]]]:
    given_, expected = case(name)
    demand = KafkaDemand(
        peak_in_mibps=float(given_["peak_in"]),
        peak_out_mibps=float(given_["peak_out"]),
        average_in_mibps=float(given_["avg_in"]) if "avg_in" in given_ else None,
        partitions=given_["partitions_incl_replicas"] // 3,
        replication=given_.get("rf", 3),
        retention_h=float(given_.get("retention_h", 24)),
        utilisation=given_["util"],
    )
    return demand, expected


@pytest.mark.parametrize("name", ["KAFKA1", "KAFKA2", "KAFKA3-express"])
def test_brokers_prices_and_storage_are_those_of_the_known_answers(name: str) -> None:
    demand, expected = of_case(name)
    for broker, answer in expected.items():
        option = option_of(demand, broker)
        assert option.brokers == answer["brokers"], broker
        assert round(option.broker_usd_per_month, 2) == answer["broker_usd_mo"], broker
        if "ebs_gib" in answer:
            assert round(option.ingress_mibps_per_broker, 4) == answer["ingress_per_broker_mibs"], broker
            assert option.storage.ebs_gib == answer["ebs_gib"], broker


def test_of_two_clusters_of_one_price_the_one_with_fewer_brokers_is_taken() -> None:
    first, second = options(STANDARD, "standard")[:2]
    assert (first.broker_type, first.brokers) == ("kafka.m7g.xlarge", 9)
    assert (second.broker_type, second.brokers) == ("kafka.m7g.large", 18)
    assert first.broker_usd_per_month == pytest.approx(second.broker_usd_per_month)


def test_express_sends_twice_what_it_takes() -> None:
    demand = KafkaDemand(peak_in_mibps=10.0, peak_out_mibps=100.0)
    option = option_of(demand, "express.m7g.large")
    assert (option.brokers, option.binding) == (6, "egress")
    assert option.ingress_mibps_per_broker == pytest.approx(3.125)


@pytest.mark.parametrize(
    ("change", "binding"),
    [
        ({}, "ingress"),
        ({"peak_out_mibps": 2000.0}, "egress"),
        ({"partitions": 20_000}, "partitions"),
        ({"retention_h": 2400.0}, "storage"),
        ({"peak_in_mibps": 1.0, "peak_out_mibps": 1.0, "average_in_mibps": 1.0}, "zones"),
    ],
)
def test_what_binds_is_named(change: dict[str, float], binding: str) -> None:
    assert option_of(STANDARD.model_copy(update=change), "kafka.m7g.large").binding == binding


def test_tiered_storage_takes_more_of_a_broker_and_less_of_its_volumes() -> None:
    large = broker_type("kafka.m7g.large")
    assert large is not None
    tiered = STANDARD.model_copy(update={"retention_h": 240.0, "primary_retention_h": 6.0})
    assert ingress_mibps_per_broker(large, tiered) == pytest.approx(78.75 / 8.0)
    assert storage(tiered, "standard").ebs_gib == pytest.approx(30375.0 / 4)
    assert storage(tiered, "standard").tiered_gib == pytest.approx(30375.0 / 6 * 10)
    network = tiered.model_copy(update={"peak_out_mibps": 1000.0})
    assert ingress_mibps_per_broker(large, network) == pytest.approx(117 / (1.5 * 10 + 7.2))


def test_volumes_above_250_mib_a_second_have_to_be_provisioned() -> None:
    assert option_of(STANDARD, "kafka.m7g.large").provisioned_mibps == 0
    assert option_of(STANDARD, "kafka.m7g.4xlarge").provisioned_mibps == 434
    assert option_of(STANDARD.model_copy(update={"utilisation": 0.8}), "kafka.m7g.2xlarge").provisioned_mibps == 271


def test_less_provisioned_throughput_takes_more_brokers_also_of_2xlarge() -> None:
    less = STANDARD.model_copy(update={"provisioned_mibps": 250.0})
    assert option_of(less, "kafka.m7g.2xlarge").ingress_mibps_per_broker == pytest.approx(250 / 6.5)
    assert option_of(less, "kafka.m7g.4xlarge").brokers == 6
    assert option_of(less, "kafka.m7g.xlarge") == option_of(STANDARD, "kafka.m7g.xlarge")


def test_two_zones_take_a_multiple_of_two_and_at_least_the_replicas() -> None:
    assert option_of(KafkaDemand(peak_in_mibps=1.0, zones=2), "kafka.m7g.large").brokers == 4
    assert option_of(KafkaDemand(peak_in_mibps=1.0, zones=2, replication=2), "kafka.m7g.large").brokers == 2


def test_the_hard_limit_of_partitions_is_used_only_if_asked() -> None:
    many = KafkaDemand(peak_in_mibps=1.0, partitions=1500)
    assert option_of(many, "kafka.m7g.large").brokers == 6
    assert option_of(many.model_copy(update={"use_max_partitions": True}), "kafka.m7g.large").brokers == 3


@pytest.mark.parametrize(
    ("change", "binding", "nearest"),
    [
        ({"peak_in_mibps": 1e5, "peak_out_mibps": 0.0}, "ingress", "at most 4,615.3 MiB/s in"),
        ({"partitions": 100_000}, "partitions", "at most 80,000 partitions"),
        ({"retention_h": 20_000.0}, "storage", "at most 776."),
    ],
)
def test_a_load_above_every_cluster_is_rejected_with_what_binds_and_the_nearest(
    change: dict[str, float], binding: str, nearest: str
) -> None:
    with pytest.raises(KafkaOutOfReach) as error:
        cheapest(STANDARD.model_copy(update=change), "standard")
    assert error.value.code == "SIZ-040" and error.value.exit_code == 3
    assert f"limited by {binding}" in error.value.need
    assert error.value.fix.startswith(nearest)


def test_the_nearest_load_is_one_that_a_cluster_carries() -> None:
    assert cheapest(KafkaDemand(peak_in_mibps=4615.3, average_in_mibps=60.0), "standard").brokers == 60
    assert cheapest(STANDARD.model_copy(update={"partitions": 80_000}), "standard").brokers == 60


def test_a_cluster_that_is_too_small_is_a_violation_with_what_it_needs() -> None:
    assert cluster_violations(STANDARD, "kafka.m7g.large", 18) == []
    (result,) = cluster_violations(STANDARD, "kafka.m7g.large", 3)
    assert (result.code, result.given) == ("SIZ-041", "3")
    assert result.need == "18 brokers of kafka.m7g.large, limited by ingress: 100.0 MiB/s in"
    assert result.fix == "brokers: 18, or fewer of a larger type: 9 of kafka.m7g.xlarge"


@pytest.mark.parametrize("name", ["kafka.t3.small", "kafka.m9.huge", ""])
def test_a_broker_type_without_known_limits_is_rejected(name: str) -> None:
    with pytest.raises(UnknownBrokerType) as error:
        option_of(STANDARD, name)
    assert error.value.code == "SIZ-042"


def test_serverless_takes_the_partitions_that_its_limits_ask_for() -> None:
    used = serverless_use(STANDARD.model_copy(update={"partitions": 10}))
    assert (used.partitions, used.binding) == (21, "ingress")
    assert used.storage_gib == pytest.approx(60 * 86400 / 1024)
    assert serverless_use(STANDARD).partitions == 200
    assert serverless_use(STANDARD, ServerlessLimits(partition_gb=10.0)).binding == "storage"


@pytest.mark.parametrize(("change", "binding"), [({"peak_in_mibps": 250.0}, "ingress"), ({"partitions": 2401}, "partitions")])
def test_serverless_limits_are_errors_with_the_limit(change: dict[str, float], binding: str) -> None:
    with pytest.raises(KafkaOutOfReach) as error:
        serverless_use(STANDARD.model_copy(update=change))
    assert f"for {binding}" in error.value.need


RATES = st.floats(0, 1e6)
DEMANDS = st.builds(
    KafkaDemand,
    peak_in_mibps=RATES,
    peak_out_mibps=RATES,
    average_in_mibps=st.none() | RATES,
    partitions=st.integers(0, 100_000),
    replication=st.integers(1, 5),
    retention_h=st.floats(0, 10_000),
    primary_retention_h=st.none() | st.floats(0, 1000),
    zones=st.sampled_from([2, 3]),
    utilisation=st.none() | st.floats(0.01, 1),
    use_max_partitions=st.booleans(),
    provisioned_mibps=st.none() | st.floats(250, 1000),
)
KINDS: st.SearchStrategy[Kind] = st.sampled_from(["standard", "express"])


def chosen(demand: KafkaDemand, kind: Kind) -> KafkaOption | None:
    try:
        return cheapest(demand, kind)
    except KafkaOutOfReach as error:
        assert error.need and error.fix and error.given
        return None


@given(demand=DEMANDS, kind=KINDS)
def test_any_demand_has_a_cluster_that_carries_it_or_a_coded_error(demand: KafkaDemand, kind: Kind) -> None:
    result = chosen(demand, kind)
    if result is None:
        return
    assert result.brokers % (3 if kind == "express" else demand.zones) == 0
    assert result.usable_ingress_mibps >= demand.peak_in_mibps * (1 - 1e-6)
    limits = broker_type(result.broker_type)
    assert limits is not None
    most = limits.max_partitions if demand.use_max_partitions else limits.recommended_partitions
    assert result.brokers * most >= demand.partitions_with_replicas(kind)
    assert result.storage.ebs_gib <= result.brokers * 16_384 * (1 + 1e-9)


@given(rate=st.floats(0.01, 2000), factor=st.floats(1, 20), fan_out=st.floats(0, 5), partitions=st.integers(0, 3000), kind=KINDS)
def test_more_ingress_never_has_less_ingress_capacity(rate: float, factor: float, fan_out: float, partitions: int, kind: Kind) -> None:
    def of(peak: float) -> KafkaOption | None:
        return chosen(KafkaDemand(peak_in_mibps=peak, peak_out_mibps=peak * fan_out, partitions=partitions), kind)

    less, more = of(rate), of(rate * factor)
    assert less is not None or more is None
    if less is not None and more is not None:
        assert more.usable_ingress_mibps >= less.usable_ingress_mibps * (1 - 1e-9)


def test_every_type_of_the_data_is_read() -> None:
    names = [result.name for result in broker_types()]
    assert len(names) == 22 and len(set(names)) == 22
    assert sum(result.kind == "express" for result in broker_types()) == 7
