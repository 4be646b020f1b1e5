"""cdktf with every stack that an emulated AWS can carry: deployed, planned again and destroyed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulated.cdktf_deployment import LIMIT_S, Deployed, deployed

pytestmark = pytest.mark.timeout(LIMIT_S)


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("cdktf")) as running:
        yield running


def test_it_deploys_every_stack_that_an_emulator_can_carry(stacks: Deployed) -> None:
    assert stacks.states() == set(stacks.names)


def test_nothing_is_left_to_change_right_after(stacks: Deployed) -> None:
    assert stacks.differing() == []


def test_it_destroys_all_of_it_again(stacks: Deployed) -> None:
    stacks.destroy()
    assert stacks.client("eks").list_clusters()["clusters"] == []
    assert stacks.client("kafka").list_clusters_v2()["ClusterInfoList"] == []
    assert stacks.client("s3").list_buckets()["Buckets"] == []
    vpcs = stacks.client("ec2").describe_vpcs()["Vpcs"]
    assert [vpc["VpcId"] for vpc in vpcs if not vpc["IsDefault"]] == []
