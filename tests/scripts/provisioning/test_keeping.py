from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from penstock.scripts.provisioning.errors import NothingOfThatName
from penstock.scripts.provisioning.keeping import DestroyAction, StackState, destroy_actions
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.state_resource import StateResource

KEY = StateResource("aws_kms_key.key", "aws_kms_key", {"key_id": "k"})


def _bucket(name: str) -> list[StateResource]:
    bucket = f"aws_s3_bucket.{name}"
    return [
        StateResource(bucket, "aws_s3_bucket", {"bucket": name}),
        StateResource(f"aws_s3_bucket_policy.{name}", "aws_s3_bucket_policy", {"bucket": name}, (bucket,)),
        StateResource(
            f"aws_s3_bucket_encryption.{name}",
            "aws_s3_bucket_server_side_encryption_configuration",
            {"bucket": name},
            (bucket, KEY.address),
        ),
    ]


LOGGING = StateResource(
    "aws_s3_bucket_logging.data", "aws_s3_bucket_logging", {"bucket": "data"}, ("aws_s3_bucket.data", "aws_s3_bucket.logs")
)


def _state(
    name: str,
    resources: Collection[StateResource],
    *,
    protected: Collection[str] = (),
    uses: Mapping[str, frozenset[str]] | None = None,
) -> StackState:
    return StackState(Stack(name, Path(name), ()), tuple(resources), frozenset(protected), uses or {})


def _destroy_actions(
    *states: StackState, buckets: Collection[str] = (), others: Collection[str] = (), full: Collection[str] = ()
) -> dict[str, DestroyAction]:
    actions = destroy_actions(states, buckets=buckets, others=others, holds_data=lambda name: name in full)
    return {action.name: action for action in actions}


def test_a_bucket_with_data_stays_with_its_settings_and_its_key_and_an_empty_one_goes() -> None:
    action = _destroy_actions(_state("checkpoints", [KEY, *_bucket("data"), *_bucket("none")]), full=["data"])["checkpoints"]
    assert action.kept == {KEY.address, *(one.address for one in _bucket("data"))}
    assert set(action.destroyed) == {one.address for one in _bucket("none")}
    assert list(action.why.values()) == ["it holds data; --delete-bucket data"]


def test_a_named_bucket_is_deleted_with_its_data_and_the_last_one_with_the_key() -> None:
    state = _state("checkpoints", [KEY, *_bucket("data"), *_bucket("more")])
    one = _destroy_actions(state, buckets=["data"], full=["data", "more"])["checkpoints"]
    assert KEY.address in one.kept
    assert set(one.destroyed) == {resource.address for resource in _bucket("data")}
    assert not _destroy_actions(state, buckets=["data", "more"], full=["data", "more"])["checkpoints"].kept


def test_the_bucket_of_the_access_logs_stays_for_the_bucket_that_logs_there_until_it_is_named() -> None:
    state = _state("checkpoints", [KEY, *_bucket("data"), *_bucket("logs"), LOGGING])
    assert not _destroy_actions(state, full=["data"])["checkpoints"].destroyed
    named = _destroy_actions(state, buckets=["logs"], full=["data", "logs"])["checkpoints"]
    assert set(named.destroyed) == {LOGGING.address, *(one.address for one in _bucket("logs"))}


def test_what_the_environment_protects_stays_empty_or_not_until_it_is_named() -> None:
    brokers = StateResource("aws_msk_cluster.brokers", "aws_msk_cluster", {}, ("aws_security_group.brokers",))
    group = StateResource("aws_security_group.brokers", "aws_security_group", {})
    alarm = StateResource("aws_cloudwatch_metric_alarm.full", "aws_cloudwatch_metric_alarm", {}, (brokers.address,))
    state = _state("kafka", [group, brokers, alarm], protected=[brokers.address])
    assert _destroy_actions(state)["kafka"].kept == {brokers.address, group.address}
    assert not _destroy_actions(state, others=["kafka/aws_msk_cluster.brokers"])["kafka"].kept


def test_a_repository_that_stays_keeps_its_policy() -> None:
    repository = StateResource("aws_ecr_repository.jobs", "aws_ecr_repository", {"name": "x/jobs"}, (KEY.address,))
    policy = StateResource("aws_ecr_repository_policy.jobs", "aws_ecr_repository_policy", {"repository": "x/jobs"}, (repository.address,))
    state = _state("registry", [KEY, repository, policy], protected=[KEY.address, repository.address])
    assert not _destroy_actions(state)["registry"].destroyed
    assert not _destroy_actions(state, others=["registry/aws_ecr_repository.jobs"])["registry"].kept


def test_a_protected_key_goes_with_the_last_that_it_encrypts() -> None:
    secrets = StateResource("aws_eks_cluster.cluster", "aws_eks_cluster", {}, (KEY.address,))
    uses = {secrets.address: frozenset(["network"])}
    network = _state("network", [StateResource("aws_vpc.vpc", "aws_vpc", {})])
    actions = _destroy_actions(network, _state("cluster", [KEY, secrets], protected=[KEY.address], uses=uses))
    assert not actions["cluster"].kept
    assert not actions["network"].kept
    state = _state("checkpoints", [KEY, *_bucket("data")], protected=[KEY.address, "aws_s3_bucket.data"])
    assert len(_destroy_actions(state)["checkpoints"].kept) == 4
    assert not _destroy_actions(state, buckets=["data"], full=["data"])["checkpoints"].kept


def test_a_stack_that_a_kept_resource_depends_on_is_kept_completely() -> None:
    network = _state("network", [StateResource("aws_vpc.vpc", "aws_vpc", {})])
    registry = _state("registry", [StateResource("aws_ecr_repository.jobs", "aws_ecr_repository", {})])
    group = StateResource("aws_security_group.brokers", "aws_security_group", {})
    brokers = StateResource("aws_msk_cluster.brokers", "aws_msk_cluster", {}, (group.address,))
    uses = {group.address: frozenset(["network"])}
    actions = _destroy_actions(network, registry, _state("kafka", [group, brokers], protected=[brokers.address], uses=uses))
    assert actions["network"].kept == {"aws_vpc.vpc"}
    assert actions["network"].why == {}
    assert actions["registry"].destroyed == ("aws_ecr_repository.jobs",)


def test_without_anything_to_keep_all_goes() -> None:
    assert not _destroy_actions(_state("checkpoints", [KEY, *_bucket("none")]))["checkpoints"].kept


@pytest.mark.parametrize(("buckets", "others"), [(["dta"], []), ([], ["checkpoints/aws_kms_key.kay"])])
def test_a_name_that_nothing_has_is_refused(buckets: list[str], others: list[str]) -> None:
    with pytest.raises(NothingOfThatName) as raised:
        _destroy_actions(_state("checkpoints", [KEY, *_bucket("data")]), buckets=buckets, others=others)
    assert raised.value.exit_code == 2
    assert "data" in raised.value.need or "aws_kms_key.key" in raised.value.need
