"""What the stack of the releases may have besides releases: the archives of a session's apps, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security import helm_releases
from penstock.scripts.security.references import References

ARCHIVE = {"bucket": "b", "key": "a/apps/1.zip", "content_base64": "", "lifecycle": {}, "override_provider": {}}


@pytest.mark.parametrize(
    ("kind", "arguments", "refused"),
    [
        ("aws_s3_object", ARCHIVE, False),
        ("aws_s3_object", {**ARCHIVE, "acl": "public-read"}, True),
        ("aws_s3_bucket", {"bucket": "b"}, True),
    ],
)
def test_only_an_archive_without_rights_of_its_own_is_allowed(kind: str, arguments: dict[str, Any], refused: bool, tmp_path: Path) -> None:
    (tmp_path / "cdk.tf.json").write_text(json.dumps({"provider": {"helm": []}, "resource": {kind: {"app-a": arguments}}}), "utf-8")
    stack = Stack("jobs-charts", tmp_path, ())
    found = [finding.rule for finding in helm_releases.findings(stack, References([stack]))]
    assert found == (["PEN_HELM_3"] if refused else [])
