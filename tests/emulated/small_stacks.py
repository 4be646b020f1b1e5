"""Small stacks with their state on an emulated AWS, applied in seconds: what deploying and destroying do is the same for the large ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.state_key import state_key
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning.stacks import Stack

SERVICES = ("iam", "kms", "logs", "s3", "sqs", "sts")


def environment(aws: EmulatedAws, name: str) -> Environment:
    """An environment of its own on the emulated AWS, with its state in a bucket there."""
    data = load("local").at(aws.endpoint).model_dump(by_alias=True, exclude_none=True)
    data["metadata"]["name"] = name
    data["spec"]["state"] = {"bucket": f"{name}-state"}
    data["spec"]["buckets"] = {"checkpoints": f"{name}-checkpoints", "output": f"{name}-output"}
    return Environment.model_validate(data)


class PlainStacks:
    """The stacks ``store`` and ``reader``, which takes an output of it, of Terraform's own resources: without a provider they take no time.

    Args:
        environment: whose they are, with a bucket for their state.
        folder: where they are written to.

    Attributes:
        reader: more resources of the second: name -> arguments.
    """

    def __init__(self, environment: Environment, folder: Path) -> None:
        self.environment = environment
        self.folder = folder
        self.reader: Mapping[str, Any] = {}

    def written(self, store: Mapping[str, Any] | None = None) -> list[Stack]:
        """Writes them, and says where.

        Args:
            store: more resources of the first: name -> arguments.
        """
        reference = "data.terraform_remote_state.cross-stack-reference-input-store"
        remote = {"cross-stack-reference-input-store": {"backend": "s3", "config": self._place("store")}}
        made = {"data": {"input": "bucket"}, **(store or {})}
        outputs = {"cross-stack-output-data": {"value": "${terraform_data.data.output}", "sensitive": True}, "place": {"value": "here"}}
        taken = {"log": {"input": f"${{{reference}.outputs.cross-stack-output-data}}"}, **self.reader}
        return [
            self._write("store", (), {"resource": {"terraform_data": made}, "output": outputs}),
            self._write(
                "reader",
                ("store",),
                {"resource": {"terraform_data": taken}, "data": {"terraform_remote_state": remote}, "output": {"read": _value("log")}},
                inputs={"store": ("cross-stack-output-data",)},
                resource_inputs={"terraform_data.log": ("store",)},
            ),
        ]

    def independent(self, resources: Mapping[str, Mapping[str, Any]]) -> list[Stack]:
        """Writes stacks that don't wait for each other.

        Args:
            resources: stack -> its resources: name -> arguments.
        """
        return [self._write(name, (), {"resource": {"terraform_data": made}}) for name, made in resources.items()]

    def _write(
        self,
        name: str,
        dependencies: tuple[str, ...],
        content: Mapping[str, Any],
        *,
        inputs: Mapping[str, tuple[str, ...]] | None = None,
        resource_inputs: Mapping[str, tuple[str, ...]] | None = None,
        **settings: Any,
    ) -> Stack:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"terraform": {"backend": {"s3": {**self._place(name), "use_lockfile": True}}, **settings}, **content})
        (folder / "cdk.tf.json").write_text(text)
        return Stack(name, folder, dependencies, inputs or {}, resource_inputs or {})

    def _place(self, stack: str) -> dict[str, Any]:
        endpoints, state = self.environment.spec.endpoints, self.environment.spec.state
        assert endpoints is not None
        assert state is not None
        return {
            "bucket": state.bucket,
            "key": state_key(self.environment.name, stack),
            "region": self.environment.spec.region,
            "endpoints": {"s3": endpoints.aws, "sts": endpoints.aws, "iam": endpoints.aws},
            "use_path_style": True,
            "skip_credentials_validation": True,
            "skip_requesting_account_id": True,
            "skip_metadata_api_check": True,
        }


class BucketStack(PlainStacks):
    """The stack ``store`` with two buckets, and a key that encrypts the first.

    Args:
        environment: as of `PlainStacks`.
        folder: as of `PlainStacks`.
    """

    def __init__(self, environment: Environment, folder: Path) -> None:
        super().__init__(environment, folder)
        self.bucket, self.other = f"{environment.name}-data", f"{environment.name}-other"

    def written(self, store: Mapping[str, Any] | None = None, *, protect: bool = False, kms: str | None = None) -> list[Stack]:
        """Writes it, and says where.

        Args:
            store: more resources: type -> name -> arguments.
            protect: whether the first bucket and the key are.
            kms: where KMS is asked, if elsewhere.
        """
        kept = {"lifecycle": {"prevent_destroy": True}} if protect else {}
        resources: dict[str, Any] = {
            "aws_kms_key": {"key": {"description": self.environment.name, "deletion_window_in_days": 7, **kept}},
            "aws_s3_bucket": {"data": {"bucket": self.bucket, **kept}, "other": {"bucket": self.other}},
            "aws_s3_bucket_server_side_encryption_configuration": {"data": _encryption("data")},
            "aws_s3_bucket_public_access_block": {"other": {"bucket": "${aws_s3_bucket.other.id}", "block_public_acls": True}},
        }
        for kind, named in (store or {}).items():
            resources[kind] = {**resources.get(kind, {}), **named}
        content = {"resource": resources, "provider": {"aws": [self._provider(kms)]}}
        return [self._write("store", (), content, required_providers={"aws": {"source": "aws", "version": "5.100.0"}})]

    def _provider(self, kms: str | None) -> dict[str, Any]:
        endpoints = self.environment.spec.endpoints
        assert endpoints is not None
        return {
            "region": self.environment.spec.region,
            "endpoints": [{**dict.fromkeys(SERVICES, endpoints.aws), "kms": kms or endpoints.aws}],
            "default_tags": [{"tags": {"penstock:environment": self.environment.name}}],
            "skip_credentials_validation": True,
            "skip_metadata_api_check": "true",
            "s3_use_path_style": True,
            "max_retries": 2,
        }


def _value(name: str) -> dict[str, Any]:
    return {"value": f"${{terraform_data.{name}.output}}", "sensitive": True}


def _encryption(bucket: str) -> dict[str, Any]:
    default = {"sse_algorithm": "aws:kms", "kms_master_key_id": "${aws_kms_key.key.arn}"}
    return {"bucket": f"${{aws_s3_bucket.{bucket}.id}}", "rule": [{"apply_server_side_encryption_by_default": [default]}]}
