from __future__ import annotations

from penstock.scripts.provisioning.state_lock import locked

DETAIL = """Error message: resource temporarily unavailable
Lock Info:
  ID:        e74f6df1-6819-fbcb-35fb-90ba10256bf8
  Path:      t.tfstate
  Operation: OperationTypeApply
  Who:       root@vm
  Version:   1.11.4
  Created:   2026-11-21 22:11:33.013231594 +0000 UTC
  Info:


Terraform acquires a state lock to protect the state from being written
by multiple users at the same time. For most commands, you can disable locking with the "-lock=false"
flag, but this is not recommended."""


def test_the_holder_of_a_lock_is_named_with_what_it_does_since_when_and_how_to_go_on() -> None:
    error = locked("network", DETAIL)
    assert error.path == "stack network"
    assert error.given == (
        "root@vm is running an apply or a destroy since 2026-11-21 22:11:33.013231594 +0000 UTC, lock ID e74f6df1-6819-fbcb-35fb-90ba10256bf8"  # noqa: E501
    )
    assert "--unlock e74f6df1-6819-fbcb-35fb-90ba10256bf8" in error.fix
    assert error.exit_code == 5


def test_a_backend_that_does_not_say_who_holds_the_lock_is_quoted() -> None:
    error = locked("network", "operation error S3: PutObject,\n  https response error StatusCode: 500")
    assert error.given == "operation error S3: PutObject, https response error StatusCode: 500"
