from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.app import AWS
from penstock.scripts.emulation.errors import LocalStackNotReached
from penstock.scripts.emulation.localstack import SERVICES, LocalStack
from penstock.testing import AppliedStacks

# Before the first one LocalStack's environment is made, and all stacks are applied and planned again.
pytestmark = pytest.mark.timeout(2400)


def test_every_aws_stack_is_applied(everything: AppliedStacks) -> None:
    # Every stack has resources; that a second plan is empty, the fixture checks.
    assert [name for name in AWS if not everything.resources(name)] == []
    assert everything.outputs["cluster"]["cluster_name"]


def test_the_clusters_security_group_is_one_of_the_other_emulators(everything: AppliedStacks) -> None:
    group = everything.outputs["cluster"]["node_security_group_ids"][0]
    (described,) = everything.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert described["VpcId"] == everything.outputs["network"]["vpc_id"]


def test_the_services_are_where_they_belong(everything: AppliedStacks) -> None:
    cluster = everything.outputs["cluster"]["cluster_name"]
    assert everything.client("eks").describe_cluster(name=cluster)["cluster"]["status"] == "ACTIVE"
    assert everything.client("sqs").list_queues()["QueueUrls"]
    assert _localstack(everything) in everything.client("sqs").meta.endpoint_url
    assert _localstack(everything) not in everything.client("eks").meta.endpoint_url


def test_the_users_own_localstack_is_used_as_it_is(everything: AppliedStacks, tmp_path: Path) -> None:
    endpoint = _localstack(everything)
    with LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={"LOCALSTACK_ENDPOINT": f"{endpoint}/"}) as own:
        assert own.endpoint == endpoint
        # Its EC2 would have faults that Penstock corrects where it starts LocalStack.
        assert set(own.services) == {*SERVICES} - {"ec2"}
    assert not (tmp_path / "log").exists()
    assert everything.client("sts").get_caller_identity()["Account"] == everything.environment.spec.account


def test_an_endpoint_that_is_no_localstack_is_an_error(everything: AppliedStacks, tmp_path: Path) -> None:
    moto = everything.client("eks").meta.endpoint_url
    for endpoint in (moto, "http://127.0.0.1:9"):
        with pytest.raises(LocalStackNotReached) as raised:
            LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={"LOCALSTACK_ENDPOINT": endpoint}).start()
        assert raised.value.path == endpoint
        assert "LOCALSTACK_ENDPOINT" in raised.value.fix


def _localstack(everything: AppliedStacks) -> str:
    endpoint: str = everything.client("sts").meta.endpoint_url
    return endpoint
