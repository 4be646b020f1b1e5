"""Fixes of moto's EC2, which LocalStack uses too: the module imports only moto, so that it runs in LocalStack's Python."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateBackend
from moto.ec2.models.security_groups import SecurityGroupRule


def apply() -> None:
    """Patch EC2 in this process."""
    _keep_tags_out_of_templates()
    _describe_rules()


def _keep_tags_out_of_templates() -> None:
    """The tags of a launch template are not among its tags for instances; moto lists them there, and Terraform would remove them."""
    create = LaunchTemplateBackend.create_launch_template

    def create_launch_template(backend: LaunchTemplateBackend, name: str, about: str, data: dict[str, Any], tags: Any) -> LaunchTemplate:
        given = [one for one in data.pop("TagSpecifications", []) if one["ResourceType"] != "launch-template"]
        return create(backend, name, about, {**data, **({"TagSpecifications": given} if given else {})}, tags)

    setattr(LaunchTemplateBackend, "create_launch_template", create_launch_template)  # noqa: B010


def _describe_rules() -> None:
    """A rule for another security group has a description, like one for a CIDR range; moto parses it only for ranges."""
    described = property(lambda rule: (rule.ip_range or {}).get("Description") or (rule.source_group or {}).get("Description"))
    setattr(SecurityGroupRule, "description", described)  # noqa: B010
