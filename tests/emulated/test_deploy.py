from __future__ import annotations

import getpass
import socket
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.errors import UnknownStack
from penstock.scripts.errors import TerraformTimeout
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.deployment import Deferred, outputs, wanted
from penstock.scripts.provisioning.errors import StatefulLoss, StateLocked
from penstock.scripts.provisioning.stacks import Stack
from penstock.sizing.errors import Faults
from tests.emulated.deploying import applying, blocking, deployment, own, pipe, plain, small
from tests.emulated.small_stacks import BucketStack, PlainStacks

__all__ = ["own", "pipe", "plain", "small"]


def test_stacks_are_applied_in_order_with_their_state_in_the_bucket_and_are_up_to_date_afterwards(plain: PlainStacks) -> None:
    own = plain.environment
    first = deployment(own, plain.written())
    planned = first.plan()
    assert str(planned["store"]) == "1 to create"
    assert planned["reader"] == Deferred("reader", "store is applied", 1)
    # One stack is planned, the other all of its resources.
    assert len(list(first.to_create())) == 2
    assert [str(one.changes) for one in first.apply()] == ["1 to create", "1 to create"]
    assert outputs(first) == {"store": {"place": "here"}, "reader": {"read": "bucket"}}
    state = AwsAccess(own).client("s3").list_objects_v2(Bucket=f"{own.name}-state")["Contents"]
    assert [one["Key"] for one in state] == [f"{own.name}/reader.tfstate", f"{own.name}/store.tfstate"]

    second = deployment(own, plain.written())
    second.plan()
    assert second.nothing_to_do
    assert list(second.to_create()) == []

    third = deployment(own, plain.written({"data": {"input": "other"}}))
    third.plan()
    assert not third.nothing_to_do
    # The reader was planned on the old output; it is planned again on the new one.
    assert [str(one.changes) for one in third.apply()] == ["1 to change", "1 to change"]
    assert outputs(third)["reader"] == {"read": "other"}


def _runs(command: str) -> dict[str, Any]:
    return {"command": {"provisioner": {"local-exec": {"command": command}}}}


def test_stacks_that_do_not_wait_for_each_other_are_applied_at_the_same_time(plain: PlainStacks, pipe: Path) -> None:
    # Each ends when the other has opened the pipe, too.
    stacks = plain.independent({"writer": _runs(f"echo applied > {pipe}"), "reader": _runs(f"read line < {pipe} && test $line = applied")})
    both = deployment(plain.environment, stacks, limit_s=120)
    assert list(both.plan()) == ["writer", "reader"]
    assert [str(one.applied).split(" in ")[0] for one in both.apply()] == ["1 created", "1 created"]


def test_after_a_failure_what_depends_on_it_is_left_out_and_the_rest_is_applied_and_every_error_is_shown(plain: PlainStacks) -> None:
    store, reader = plain.written(_runs("echo no store; exit 1"))
    more = plain.independent({"other": _runs("true"), "broken": _runs("echo no broken; exit 1")})
    failing = deployment(plain.environment, [store, reader, *more])
    failing.plan()
    with pytest.raises(Faults) as raised:
        failing.apply()
    assert [error.code for error in raised.value.errors] == ["RUN-007", "RUN-007"]
    assert [word for word in ("no store", "no broken") if word in raised.value.render()] == ["no store", "no broken"]
    assert failing.applied == ("other",)


def test_a_check_of_a_plan_stops_the_deploy_before_anything_is_applied(plain: PlainStacks) -> None:
    fault = StatefulLoss(path="store", need="another plan")
    refused = deployment(plain.environment, plain.written(), checks=[lambda plan: [fault]])
    with pytest.raises(StatefulLoss) as raised:
        refused.plan()
    assert raised.value is fault
    assert "Contents" not in AwsAccess(plain.environment).client("s3").list_objects_v2(Bucket=f"{plain.environment.name}-state")


def test_a_stack_that_is_named_brings_what_it_depends_on(tmp_path: Path) -> None:
    for name in ("store", "reader", "other"):
        (tmp_path / name).mkdir()
    after: dict[str, tuple[str, ...]] = {"store": (), "reader": ("store",), "other": ()}
    stacks = [Stack(name, tmp_path / name, dependencies) for name, dependencies in after.items()]
    assert [stack.name for stack in wanted(stacks, ["reader"])] == ["store", "reader"]
    assert [stack.name for stack in wanted(stacks, ["store"])] == ["store"]
    assert wanted(stacks, []) == stacks
    with pytest.raises(UnknownStack) as raised:
        wanted(stacks, ["network"])
    assert raised.value.need == "one of store, reader, other"


def test_of_two_deploys_at_once_the_second_says_who_holds_the_lock_and_how_to_go_on(plain: PlainStacks, pipe: Path) -> None:
    own = plain.environment
    first = deployment(own, plain.written(blocking(pipe, "terraform_data.data")))
    first.plan()
    elsewhere = PlainStacks(own, pipe.parent / "elsewhere").written()
    with applying(first, pipe):
        with pytest.raises(StateLocked) as locked:
            deployment(own, elsewhere).plan()
        assert f"{getpass.getuser()}@" in locked.value.given
        assert "is running an apply or a destroy since 20" in locked.value.given
        assert locked.value.exit_code == 5
    # It was killed, so its lock is still there, and it is not broken by itself.
    with pytest.raises(StateLocked) as still:
        deployment(own, elsewhere).plan()
    last = deployment(own, elsewhere)
    last.terraform("store").unlock(still.value.fix.split()[-1])
    last.plan()
    last.apply()
    assert outputs(last)["reader"] == {"read": "bucket"}


def test_an_endpoint_that_hangs_ends_the_deploy_at_its_limit(small: BucketStack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        stacks = small.written(kms=f"http://127.0.0.1:{mute.getsockname()[1]}")
        planned = deployment(small.environment, stacks)
        planned.plan()
        # The plan asks KMS nothing; the apply waits for it.
        hanging = deployment(small.environment, stacks, limit_s=10)
        hanging.planned = planned.planned
        with pytest.raises(TerraformTimeout) as raised:
            hanging.apply()
    assert raised.value.need == "completion within 10 s"
    assert raised.value.exit_code == 5
    # Asked to end, Terraform let its lock go.
    objects = AwsAccess(small.environment).client("s3").list_objects_v2(Bucket=f"{small.environment.name}-state")["Contents"]
    assert not [one["Key"] for one in objects if one["Key"].endswith(".tflock")]
