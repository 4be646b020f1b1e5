from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from tests.infra.environments import read
from tests.infra.stacks.synthesized import Content, content


def synthesized(folder: Path, environment: Environment) -> Content:
    from penstock.infra.stacks.registry import RegistryStack

    return content(folder, "registry", lambda app: RegistryStack(app, environment))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The stack of the production environment."""
    return synthesized(tmp_path_factory.mktemp("registry"), load("production"))


def repository(stack: Content) -> dict[str, Any]:
    resource: dict[str, Any] = stack["resource"]["aws_ecr_repository"]["repository"]
    return resource


def test_a_tag_is_written_once_and_each_image_is_scanned(stack: Content) -> None:
    assert repository(stack)["name"] == "penstock-production/jobs"
    assert repository(stack)["image_tag_mutability"] == "IMMUTABLE"
    assert repository(stack)["image_scanning_configuration"] == {"scan_on_push": True}


def test_images_are_encrypted_with_the_stacks_own_key(stack: Content) -> None:
    assert repository(stack)["encryption_configuration"] == [{"encryption_type": "KMS", "kms_key": "${aws_kms_key.key.arn}"}]
    assert stack["resource"]["aws_kms_key"]["key"]["enable_key_rotation"] is True


def test_what_has_no_tag_goes_and_the_newest_stay(stack: Content) -> None:
    rules = json.loads(stack["resource"]["aws_ecr_lifecycle_policy"]["repository"]["policy"])["rules"]
    assert [rule["selection"]["tagStatus"] for rule in rules] == ["untagged", "any"]
    untagged, newest = rules
    assert (untagged["selection"]["countType"], untagged["selection"]["countNumber"]) == ("sinceImagePushed", 7)
    assert (newest["selection"]["countType"], newest["selection"]["countNumber"]) == ("imageCountMoreThan", 30)
    # ECR requires the rule for any image to have the highest number.
    assert untagged["rulePriority"] < newest["rulePriority"]
    assert all(rule["action"] == {"type": "expire"} for rule in rules)


def test_the_environment_says_how_many_images_are_kept(tmp_path: Path) -> None:
    few = synthesized(tmp_path, read(tmp_path, lambda spec: spec.update(registry={"keepImages": 3})))
    rules = json.loads(few["resource"]["aws_ecr_lifecycle_policy"]["repository"]["policy"])["rules"]
    assert rules[1]["selection"]["countNumber"] == 3


def test_the_repository_refuses_what_comes_without_tls(stack: Content) -> None:
    (statement,) = json.loads(stack["resource"]["aws_ecr_repository_policy"]["repository"]["policy"])["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "ecr:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_where_it_is_protected_images_are_kept(stack: Content, tmp_path: Path) -> None:
    assert repository(stack)["lifecycle"] == {"prevent_destroy": True}
    assert repository(stack)["force_delete"] is False
    unprotected = repository(synthesized(tmp_path, read(tmp_path, lambda spec: spec.update(protect=False))))
    assert "lifecycle" not in unprotected
    assert unprotected["force_delete"] is True


def test_the_repository_is_an_output_for_the_other_stacks(stack: Content) -> None:
    assert {name: output["value"] for name, output in stack["output"].items()} == {
        "repository_url": "${aws_ecr_repository.repository.repository_url}",
        "repository_arn": "${aws_ecr_repository.repository.arn}",
    }
