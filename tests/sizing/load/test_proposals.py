"""What a violation of a load proposes is planned again, as the reader would: the violation is gone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sizing.kafka.brokers import cheapest
from penstock.sizing.kafka.demand import KafkaDemand
from penstock.sizing.kafka.errors import KafkaOutOfReach
from penstock.sizing.load.feasibility import load_violations
from penstock.sizing.load.job_shape import JobShape, KafkaChoice
from penstock.sizing.load.load import Load
from penstock.sizing.load.planning import plan_load
from penstock.sizing.load.profile import Profile, ProfilePoint
from tests.sizing.load.loads import LOADS

HEAVY = Load(events_per_s=30_000_000.0, event_bytes=240, events_per_slot_per_s=12_000.0, fan_out=2.0)
JOB = JobShape(slots_per_executor=4, topics={"clicks": None})


def fixes(load: Load, job: JobShape) -> dict[str, str]:
    return {violation.code: violation.fix for violation in load_violations(load, job, plan_load(load, job))}


def slower(load: Load, job: JobShape, number: int) -> tuple[Load, JobShape]:
    return load.model_copy(update={"events_per_s": float(number)}), job


def kept(load: Load, job: JobShape, number: int) -> tuple[Load, JobShape]:
    return load.model_copy(update={"retention_h": number * 60_000 / 3_600_000}), job


def triggered(load: Load, job: JobShape, number: int) -> tuple[Load, JobShape]:
    return load, job.model_copy(update={"trigger_s": float(number)})


def parallel(load: Load, job: JobShape, number: int) -> tuple[Load, JobShape]:
    return load, job.model_copy(update={"parallelism": number})


def parted(load: Load, job: JobShape, number: int) -> tuple[Load, JobShape]:
    return load, job.model_copy(update={"topics": {"clicks": number}})


# What a fix says -> what a reader then writes.
FOLLOWED: tuple[tuple[str, Callable[[Load, JobShape, int], tuple[Load, JobShape]]], ...] = (
    (r"at most ([0-9,]+) events/s", slower),
    (r"retention: ([0-9]+)m", kept),
    (r"trigger: ([0-9]+)s", triggered),
    (r"a parallelism of ([0-9,]+)", parallel),
    (r"at least ([0-9,]+) partitions", parted),
)


def failing(load: Load, job: JobShape) -> list[str]:
    """The proposals that do not remove their violation."""
    followed = (
        (code, fix, follow(load, job, int(number.replace(",", ""))))
        for code, fix in fixes(load, job).items()
        for pattern, follow in FOLLOWED
        for number in re.findall(pattern, fix)
    )
    return [f"{code}: {fix}" for code, fix, changed in followed if code in fixes(*changed)]


def test_a_retention_that_alone_is_not_enough_is_not_proposed() -> None:
    """Of 30 million events/s, brokers of every type lack the network too: less retention changes nothing."""
    fix = fixes(HEAVY, JOB)["SIZ-040"]
    assert "retention" not in fix
    assert failing(HEAVY, JOB) == []


def test_a_retention_that_is_enough_is_proposed_beside_a_rate() -> None:
    long = HEAVY.model_copy(update={"events_per_s": 1_000_000.0, "retention_h": 24.0 * 365})
    fix = fixes(long, JOB)["SIZ-040"]
    assert re.match(r"at most [0-9,]+ events/s, or retention: [0-9]+m or shorter, or several clusters", fix)
    assert failing(long, JOB) == []


def test_a_trigger_that_another_parallelism_makes_too_short_is_not_proposed() -> None:
    """A trigger of one second, all of it the cost of a micro-batch, can't be planned for; one of two takes more slots, and more objects."""
    profile = Profile(date="", source="", points=(ProfilePoint(slots=1, events_per_second=1.0),))
    load = Load(
        events_per_s=1.0,
        event_bytes=1,
        profile=profile,
        peak_factor=10.0,
        utilisation=1.0,
        restart_s=21.0,
        catch_up_s=1.0,
        retention_h=1.0,
        fan_out=1.0,
        replication=1,
        stateful_operators=("join", "join"),
        batch_overhead_s=1.0,
    )
    job = JobShape(slots_per_executor=1, topics={"clicks": None}, trigger_s=1.0, kafka=KafkaChoice(kind="standard", broker_quota=3))
    assert "SIZ-044" in fixes(load, job)
    assert failing(load, job) == []


SHAPES = st.builds(
    JobShape,
    slots_per_executor=st.integers(1, 16),
    topics=st.just({"clicks": None}) | st.builds(lambda count: {"clicks": count}, st.integers(1, 500)),
    parallelism=st.none() | st.integers(1, 2_000),
    trigger_s=st.floats(0.1, 60),
    kafka=st.builds(
        KafkaChoice, kind=st.sampled_from(["standard", "express", "serverless", "none"]), broker_quota=st.sampled_from([3, 30, 60])
    ),
)


@settings(max_examples=20)
@given(load=LOADS, job=SHAPES)
def test_every_value_that_a_violation_proposes_removes_it(load: Load, job: JobShape) -> None:
    assert failing(load, job) == []


@pytest.mark.parametrize(
    "change",
    [
        {"peak_in_mibps": 1e5, "retention_h": 20_000.0},
        {"peak_in_mibps": 1e5, "peak_out_mibps": 1e6, "retention_h": 20_000.0, "partitions": 200_000},
        {"retention_h": 20_000.0, "partitions": 200_000},
    ],
)
def test_of_a_demand_with_several_limits_all_that_has_to_be_less_is_said(change: dict[str, float]) -> None:
    demand = KafkaDemand.model_validate({"peak_in_mibps": 100.0, "peak_out_mibps": 200.0, "partitions": 100, **change})
    with pytest.raises(KafkaOutOfReach) as error:
        cheapest(demand, "standard")
    said = {
        field: float(found.group(1).replace(",", ""))
        for field, pattern in (
            ("peak_in_mibps", r"([0-9,.]+) MiB/s in"),
            ("peak_out_mibps", r"([0-9,.]+) MiB/s out"),
            ("retention_h", r"([0-9,.]+) hours"),
            ("partitions", r"([0-9,]+) partitions"),
        )
        if (found := re.search(pattern, error.value.fix))
    }
    if "peak_in_mibps" in said and "peak_out_mibps" not in said:
        said["peak_out_mibps"] = demand.fan_out * said["peak_in_mibps"]
    less = {**said, **({"partitions": int(said["partitions"])} if "partitions" in said else {})}
    assert cheapest(demand.model_copy(update=less), "standard").brokers <= 60
