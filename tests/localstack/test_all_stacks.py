from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.infra.app import AWS
from penstock.scripts.emulation.errors import LocalStackNotReached
from penstock.scripts.emulation.localstack import SERVICES, LocalStack
from tests.localstack.conftest import AppliedStacks, Mixture, in_order

# The first of them has LocalStack's environment made, and all stacks applied, before it begins.
pytestmark = pytest.mark.timeout(2400)


def test_every_aws_stack_is_applied(everything: AppliedStacks) -> None:
    assert set(everything.stacks) == set(AWS)
    for name, stack in everything.stacks.items():
        wanted = {address for address, _ in stack.resources()}
        made = {change.address.partition("[")[0] for change in everything.applied[name].changes if change.action == "create"}
        assert made == wanted, name


def test_a_second_plan_of_every_stack_is_empty(everything: AppliedStacks) -> None:
    before = dict.fromkeys(everything.stacks, ())
    differs = in_order(before, lambda name: everything.terraform[name].plan())
    logs = [everything.terraform[name].folder / "terraform-plan.log" for name, differing in differs.items() if differing]
    assert logs == []


def test_the_clusters_security_group_is_one_of_the_other_emulators(everything: AppliedStacks) -> None:
    mixture = everything.mixture
    outputs = everything.applied["cluster"].outputs
    group = outputs["cluster_security_group_id"]
    (described,) = mixture.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert described["VpcId"] == everything.applied["network"].outputs["vpc_id"]


def test_the_services_are_where_they_belong(everything: AppliedStacks) -> None:
    mixture = everything.mixture
    cluster = everything.applied["cluster"].outputs["cluster_name"]
    assert mixture.client("eks").describe_cluster(name=cluster)["cluster"]["status"] == "ACTIVE"
    assert mixture.client("sqs").list_queues()["QueueUrls"]
    assert mixture.localstack.endpoint in mixture.client("sqs").meta.endpoint_url
    assert mixture.moto.endpoint in mixture.client("eks").meta.endpoint_url


def test_the_users_own_localstack_is_used_as_it_is(mixture: Mixture, tmp_path: Path) -> None:
    named = {"LOCALSTACK_ENDPOINT": f"{mixture.localstack.endpoint}/"}
    with LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment=named) as own:
        assert own.endpoint == mixture.localstack.endpoint
        assert set(own.services) == set(SERVICES)
    assert not (tmp_path / "log").exists()
    assert mixture.client("sts").get_caller_identity()["Account"] == "000000000000"


def test_an_endpoint_that_is_no_localstack_is_an_error(mixture: Mixture, tmp_path: Path) -> None:
    started_s = time.monotonic()
    for endpoint in (mixture.moto.endpoint, "http://127.0.0.1:9"):
        with pytest.raises(LocalStackNotReached) as raised:
            LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={"LOCALSTACK_ENDPOINT": endpoint}).start()
        assert raised.value.path == endpoint
        assert "LOCALSTACK_ENDPOINT" in raised.value.fix
    assert time.monotonic() - started_s < 30
