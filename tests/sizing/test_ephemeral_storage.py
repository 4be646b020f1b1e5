"""The ephemeral storage of the pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.catalog.allocatable import NodeSettings, allocatable_storage_mib, root_volume_gib
from penstock.sizing.cluster import Cluster
from penstock.sizing.ephemeral_storage import (
    StorageNeeds,
    Written,
    executor_storage,
    has_own_local_dirs,
    local_dirs_elsewhere,
    volume_limits,
)
from penstock.sizing.load.load import Load
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.units import MIB
from tests.sizing.clusters import PRODUCTION, codes, targets, violation

GIB = 1024 * MIB
VOLUMES = "spark.kubernetes.executor.volumes"
# 381,470 MiB of state in one executor.
HUGE = Load(events_per_s=1000.0, event_bytes=240, events_per_slot_per_s=20_000.0, state_keys=800_000_000, bytes_per_key=500)


def written(**changes: Any) -> Written:
    known = {"state_bytes": 6 * GIB, "stores": 12, "batch_bytes": 3 * GIB, "changed_bytes": 120 * MIB, "shuffles": 2, "known": True}
    return Written.model_validate({**known, **changes})


def huge(cluster: Cluster | None = None, **changes: Any) -> Plan:
    wanted = targets(1, 4, load=HUGE, source_topics={"a": None}, stateful_operators=("other",), **changes)
    return plan(wanted, cluster)


def with_root_volume(gib: int) -> Cluster:
    settings: NodeSettings = PRODUCTION.node_settings.model_copy(update={"root_volume_gib": gib})
    return PRODUCTION.model_copy(update={"node_settings": settings})


def test_an_executor_has_room_for_its_share_of_a_lost_one() -> None:
    needs = executor_storage(written(), 4)
    # Of three executors: two copies of 2 GiB of state and four stores, two shuffles and a spill of 1 GiB each.
    assert (needs.state_mib, needs.shuffle_mib, needs.spill_mib, needs.uploads_mib) == (4096 + 4 * 5, 2048, 1024, 40)
    assert needs.needed_mib == needs.scratch_mib + needs.uploads_mib + needs.files_mib + needs.logs_mib == 7228 + 1124
    assert needs.known


def test_the_only_executor_has_everything() -> None:
    assert executor_storage(written(), 1).state_mib == executor_storage(written(), 2).state_mib == 2 * 6 * 1024 + 12 * 5


def test_what_is_not_known_is_assumed_and_says_so() -> None:
    unknown = executor_storage(written(state_bytes=None), 4)
    assert (unknown.state_mib, unknown.known) == (2048 + 20, False)
    assert executor_storage(written(known=False), 4).known is False
    assert executor_storage(written(state_bytes=0, changed_bytes=None), 4).known is False


def test_a_local_directory_elsewhere_takes_nothing_of_the_root_volume() -> None:
    needs = executor_storage(written(state_bytes=None, known=False), 4, local_dirs_elsewhere=True)
    assert (needs.scratch_mib, needs.known) == (0, True)


@given(
    sizes=st.tuples(st.integers(0, 10**15), st.integers(0, 10**6), st.integers(0, 10**13), st.integers(0, 10**13)),
    executors=st.integers(1, 1000),
)
def test_more_executors_never_need_more_storage_each(sizes: tuple[int, int, int, int], executors: int) -> None:
    state, stores, batch, changed = sizes
    wrote = written(state_bytes=state, stores=stores, batch_bytes=batch, changed_bytes=changed)
    needs = executor_storage(wrote, executors)
    assert executor_storage(wrote, executors + 1).needed_mib <= needs.needed_mib
    assert needs.state_mib * MIB >= 2 * state // executors


@given(storage_mib=st.integers(0, 20 * 1024 * 1024))
def test_the_proposed_root_volume_is_the_smallest_that_has_the_storage(storage_mib: int) -> None:
    gib = root_volume_gib(storage_mib)
    assert allocatable_storage_mib(gib) >= storage_mib
    assert gib == 1 or allocatable_storage_mib(gib - 1) < storage_mib


def test_the_limits_of_the_volumes_and_the_logs_add_up_to_the_pods() -> None:
    needs = executor_storage(written(), 4)
    limits = volume_limits(needs, 10_000)
    assert (limits.temporary_mib, limits.work_mib) == (512 + 40, 512)
    assert limits.scratch_mib == 10_000 - 552 - 512 - needs.logs_mib
    assert volume_limits(needs, 1100).scratch_mib is None, "the pod's own limit holds"
    unlimited = volume_limits(needs, None)
    assert (unlimited.scratch_mib, unlimited.temporary_mib, unlimited.work_mib) == (None, None, 512)


@pytest.mark.parametrize(
    ("conf", "own", "elsewhere"),
    [
        ({}, False, False),
        ({f"{VOLUMES}.persistentVolumeClaim.spark-local-dir-1.options.claimName": "OnDemand"}, True, True),
        ({f"{VOLUMES}.hostPath.spark-local-dir-1.options.path": "/mnt"}, True, True),
        ({f"{VOLUMES}.emptyDir.spark-local-dir-1.options.sizeLimit": "9Gi"}, True, False),
        ({f"{VOLUMES}.persistentVolumeClaim.other.options.claimName": "OnDemand"}, False, False),
        ({"spark.kubernetes.driver.volumes.hostPath.spark-local-dir-1.options.path": "/mnt"}, False, False),
        ({"spark.kubernetes.local.dirs.tmpfs": "true"}, True, True),
        ({"spark.kubernetes.local.dirs.tmpfs": "false"}, False, False),
    ],
)
def test_the_settings_say_where_the_local_directory_is(conf: dict[str, str], own: bool, elsewhere: bool) -> None:
    assert (has_own_local_dirs(conf, "executor"), local_dirs_elsewhere(conf)) == (own, elsewhere)


def needs_of(**changes: Any) -> tuple[Plan, StorageNeeds]:
    made = plan(targets(**changes))
    return made, made.executor_storage


def test_a_load_that_gives_the_states_size_limits_the_executors() -> None:
    made = huge()
    executor, needs = made.pods.executor, made.executor_storage
    assert needs.state_mib == -(-2 * 800_000_000 * 500 // MIB) + 5
    assert executor.request_ephemeral_storage_mib == executor.limit_ephemeral_storage_mib == needs.needed_mib


@pytest.mark.parametrize("changes", [{"trigger_s": None}, {"limited_reads": True}, {"stateful_operators": ("join",)}])
def test_a_bounded_run_a_sources_own_limit_and_a_state_of_unknown_size_are_not_limited(changes: dict[str, Any]) -> None:
    made, needs = needs_of(source_topics={"a": 91}, **changes)
    assert not needs.known
    assert made.pods.executor.request_ephemeral_storage_mib == needs.needed_mib
    assert made.pods.executor.limit_ephemeral_storage_mib is None


def test_a_job_without_state_is_limited_without_a_load() -> None:
    made, needs = needs_of(source_topics={"a": 91})
    assert (needs.known, needs.state_mib) == (True, 0)
    assert made.pods.executor.limit_ephemeral_storage_mib == needs.needed_mib


@pytest.mark.parametrize("conf", [{}, {"spark.kubernetes.local.dirs.tmpfs": "true"}])
def test_state_on_the_heap_takes_no_disk_but_uploads_of_unknown_size(conf: dict[str, str]) -> None:
    _, needs = needs_of(source_topics={"a": 91}, stateful_operators=("join",), state_backend="memory", spark_conf=conf)
    assert (needs.known, needs.state_mib, needs.uploads_mib) == (False, 0, 0)


def test_the_spec_decides_and_a_smaller_size_than_needed_has_a_note() -> None:
    made = plan(targets(stateful_operators=("join",), executor={"storage_mib": 2048}, driver={"storage_mib": 4096}))
    pods = made.pods
    assert pods.executor.request_ephemeral_storage_mib == pods.executor.limit_ephemeral_storage_mib == 2048
    assert pods.driver.request_ephemeral_storage_mib == pods.driver.limit_ephemeral_storage_mib == 4096
    (note,) = [note for note in made.notes if "ephemeral storage" in note]
    assert note.startswith("the executor's ephemeral storage of 2,048 MiB is less than the ")


def test_state_that_no_root_volume_of_the_environment_holds_is_refused_with_the_volume_that_does() -> None:
    # With memory for RocksDB's cache of 500 MiB.
    large = targets(1, 4, load=HUGE, source_topics={"a": None}, stateful_operators=("other",), executor={"memory_mib": 4096})
    result = violation(large, with_root_volume(50), "SIZ-018")
    assert result.given == f"{huge().executor_storage.needed_mib:,} MiB of ephemeral storage per pod"
    assert result.need.startswith("at most 45,056 MiB per pod on a root volume of 50 GiB")
    proposed = int(result.fix.split('"')[1].removesuffix("Gi"))
    assert result.fix == f'rootVolume: "{proposed}Gi" or more for the nodes, or more executors'
    assert "SIZ-018" not in codes(huge(with_root_volume(proposed)))
    assert "SIZ-018" in codes(huge(with_root_volume(proposed - 1)))


def test_a_driver_of_too_much_storage_is_refused_with_the_volume_alone() -> None:
    result = violation(targets(driver={"storage_mib": 100_000}), PRODUCTION, "SIZ-018")
    assert result.path == "driver"
    assert result.fix == 'rootVolume: "110Gi" or more for the nodes'


def test_a_larger_root_volume_costs_more() -> None:
    def root_volumes(made: Plan) -> float:
        assert made.cost is not None
        return sum(line.usd_per_month.low for line in made.cost.lines if line.service == "EBS" and line.usd_per_month is not None)

    assert root_volumes(huge(with_root_volume(1000))) == pytest.approx(20 * root_volumes(plan(targets(1, 4), PRODUCTION)))


def test_executors_are_placed_where_their_storage_fits() -> None:
    """Of seven executors whose CPU and memory fit one node, each has 20 of the 44 GiB of a root volume."""
    nodes = plan(targets(executor={"storage_mib": 20_480}), with_root_volume(50)).nodes
    assert nodes is not None
    groups = [group for group in nodes.one_batch.groups if group.node_pool == "executors"]
    assert sorted(group.pods[0].count for group in groups for _ in range(group.count)) == [1, 2, 2, 2]
