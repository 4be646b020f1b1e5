"""IOPS and throughput of the nodes' root volumes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.cluster import Cluster, VolumePerformance
from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.load.load import Load
from penstock.sizing.plan import plan
from penstock.sizing.plan.root_volume import ebs_mibps
from penstock.sizing.plan.together import plan_together
from penstock.sizing.planned import Plan
from penstock.sizing.targets import StageTasks
from tests.sizing.clusters import LOAD, PRODUCTION, codes, targets, with_pool

# With the catch-up, 151,200 events/s of 1,000 bytes, of which a shuffle writes and reads each twice: 577 MiB/s.
BUSY = Load(events_per_s=100_000.0, event_bytes=1000, events_per_slot_per_s=20_000.0)
# As it, with 4,769 MiB of state.
STATEFUL = BUSY.model_copy(update={"state_keys": 10_000_000, "bytes_per_key": 500, "stateful_operators": ("other",)})
OWN = "rootVolumePerformance of the environment, if they are measured to need less"
LARGE = {"memory_mib": 16_384, "cpu_millicores": 4000}


def planned(load: Load | None = BUSY, slots: int = 4, cluster: Cluster | None = PRODUCTION, **changes: Any) -> Plan:
    changes.setdefault("stateful_operators", ("other",))
    return plan(targets(changes.pop("parallelism", 12), slots, load=load, source_topics={"a": None}, executor=LARGE, **changes), cluster)


def with_volume(gib: int, performance: VolumePerformance | None = None) -> Cluster:
    settings = PRODUCTION.node_settings.model_copy(update={"root_volume_gib": gib})
    return PRODUCTION.model_copy(update={"node_settings": settings, "root_volume": performance})


def lines(made: Plan, text: str) -> list[tuple[str, float]]:
    assert made.cost is not None
    return [(line.item, line.quantity) for line in made.cost.lines if line.service == "EBS" and text in line.item]


def test_the_executors_of_a_node_share_its_volume_and_the_bill_has_what_exceeds_the_baseline() -> None:
    made = planned()
    assert made.nodes is not None and made.feasible
    volume, disk = made.nodes.root_volume, made.executor_disk
    most = max(pods.count for group in made.nodes.one_batch.groups for pods in group.pods if pods.group == "executor")
    assert disk.known and most > 1
    assert volume.needed_mibps == pytest.approx(most * disk.mibps, abs=0.01)
    assert 125 < volume.needed_mibps <= volume.mibps <= 1000 and volume.mibps % 25 == 0
    assert volume.iops >= max(volume.needed_iops, 4 * volume.mibps, 3000)
    assert sum(quantity for _, quantity in lines(made, ", throughput")) == made.nodes.staged.nodes * (volume.mibps - 125)


def test_without_a_load_volumes_have_the_baseline_and_cost_nothing_more() -> None:
    for made in (planned(None), planned(trigger_s=None)):
        assert made.nodes is not None
        assert (made.nodes.root_volume.iops, made.nodes.root_volume.mibps, made.executor_disk.known) == (3000, 125, False)
        assert not lines(made, ", throughput") and not lines(made, ", IOPS")


def test_state_of_a_size_that_the_load_does_not_give_is_not_known() -> None:
    made = planned(BUSY.model_copy(update={"stateful_operators": ("other",)}))
    assert (made.executor_disk.known, made.executor_disk.state_mibps) == (False, 0)
    assert made.executor_disk.shuffle_mibps > 0
    assert planned(STATEFUL).executor_disk.known


def test_a_job_without_a_shuffle_that_the_plan_knows_writes_nothing_per_row() -> None:
    made = planned(stateful_operators=())
    assert (made.executor_disk.mibps, made.executor_disk.known) == (0, True)
    assert planned(stateful_operators=(), stages=StageTasks(stateless=12)).executor_disk.mibps == planned().executor_disk.mibps


def test_a_state_on_the_heap_writes_only_its_changelog() -> None:
    disk = planned(STATEFUL, state_backend="memory").executor_disk
    assert disk.state_mibps == 0 and disk.uploads_mibps > 0


def test_more_than_gp3_has_is_infeasible_with_what_helps() -> None:
    made = planned(STATEFUL, slots=40)
    faults = [fault for fault in made.violations if fault.code == "SIZ-064"]
    assert [fault.given for fault in faults] == ["1,000 MiB/s, the most that a gp3 volume has"]
    # They are mostly reads of the state: an upper bound, as the page cache is not counted.
    assert any("16,000 IOPS are less than" in note for note in made.notes)
    assert {fault.fix for fault in faults} == {f"more executors, each with fewer slots, or {OWN}"}
    assert "SIZ-064" not in codes(planned(slots=4))


def test_fewer_executors_on_a_node_help_where_one_alone_does_not_need_too_much() -> None:
    load = BUSY.model_copy(update={"events_per_s": 200_000.0})
    fault = next(one for one in planned(load).violations if one.code == "SIZ-064")
    assert fault.need.endswith("MiB/s for the 3 executors of a node")
    assert fault.fix.startswith("fewer executors on a node: spread.nodes: required")
    wanted = targets(
        12,
        4,
        load=load,
        source_topics={"a": None},
        stateful_operators=("other",),
        executor={**LARGE, "spread": ExecutorSpread(nodes="required")},
    )
    assert "SIZ-064" not in codes(plan(wanted, PRODUCTION))


def test_provisioned_iops_need_a_volume_of_their_size() -> None:
    load = STATEFUL.model_copy(update={"events_per_s": 8_000.0})
    made = planned(load, cluster=with_volume(22))
    assert made.nodes is not None and made.nodes.root_volume.iops == 12_500
    (fault,) = made.violations
    assert (fault.code, fault.path, fault.given, fault.fix) == ("SIZ-064", "spec.nodes.rootVolume", "22 GiB", 'rootVolume: "25Gi"')
    assert planned(load, cluster=with_volume(25)).feasible


def test_what_the_environment_gives_stands_and_less_than_needed_is_said() -> None:
    little = planned(cluster=with_volume(50, VolumePerformance(iops=4000, mibps=200)))
    assert little.nodes is not None and little.feasible
    assert (little.nodes.root_volume.iops, little.nodes.root_volume.mibps) == (4000, 200)
    assert any(note.startswith("the root volumes' 200 MiB/s and 4,000 IOPS are less than") for note in little.notes)
    much = planned(cluster=with_volume(50, VolumePerformance(iops=16_000, mibps=1000)))
    assert not any("root volumes'" in note for note in much.notes)


def test_instance_types_that_sustain_less_to_ebs_are_named_and_infeasible_if_none_sustains_it() -> None:
    slow = with_pool("executors", requirements={"node.kubernetes.io/instance-type": ["c5a.4xlarge"]})
    sustained = ebs_mibps("c5a.4xlarge", PRODUCTION)
    assert sustained == pytest.approx(1580e6 / 8 / 2**20)
    fault = next(one for one in planned(cluster=slow).violations if one.code == "SIZ-064")
    assert fault.given == f"instance types that sustain at most {sustained:,.0f} MiB/s to EBS"
    mixed = with_pool("executors", requirements={"node.kubernetes.io/instance-type": ["c5a.4xlarge", "c5.4xlarge"]})
    made = planned(cluster=mixed)
    assert "SIZ-064" not in codes(made)
    assert any(note.startswith("executors may run on c5a.4xlarge, which sustain less to EBS") for note in made.notes)


def test_executors_of_several_jobs_add_up_on_a_node() -> None:
    one, other = planned(), planned(LOAD)
    both = plan_together({"one": one, "other": other}, PRODUCTION)
    disks = {"one/executor": one.executor_disk, "other/executor": other.executor_disk}
    needed = [
        sum(pods.count * disks[pods.group].mibps for pods in group.pods if pods.group in disks)
        for placed in (both.nodes.one_batch, both.nodes.staged)
        for group in placed.groups
    ]
    assert both.nodes.root_volume.needed_mibps == pytest.approx(max(needed), abs=0.01)


def test_every_number_of_the_disks_is_explained() -> None:
    made = planned(STATEFUL)
    explained = {explanation.number: explanation.value for explanation in made.explain}
    assert made.nodes is not None
    for at, model in (("executorDisk", made.executor_disk), ("nodes.rootVolume", made.nodes.root_volume)):
        for name, value in model.model_dump(by_alias=True).items():
            assert name == "known" or explained[f"{at}.{name}"] == value
