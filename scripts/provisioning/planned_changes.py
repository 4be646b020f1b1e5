"""Changes of a Terraform plan, and whether they are allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.scripts.provisioning.errors import StatefulLoss

# Types that hold data or the key to it and cannot be recreated. A plan that deletes or replaces one is refused unless it is named.
STATEFUL_TYPES = frozenset(
    {
        "aws_s3_bucket",
        "aws_kms_key",
        "aws_msk_cluster",
        "aws_msk_serverless_cluster",
        "aws_opensearch_domain",
        "aws_prometheus_workspace",
        "aws_ecr_repository",
        "aws_cloudwatch_log_group",
        "aws_eks_cluster",
        "aws_vpc",
        "aws_dynamodb_table",
        "aws_ebs_volume",
        "aws_efs_file_system",
    }
)
ACTIONS = ("import", "create", "change", "replace", "destroy")
# Source: Terraform's documentation, "JSON Output Format", action_reason.
_TAINTED = "replace_because_tainted"
_ACTIONS = {("create",): "create", ("update",): "change", ("delete",): "destroy", ("forget",): "forget"}


@dataclass(frozen=True)
class ResourceChange:
    """The change of one resource.

    Args:
        address: its address, such as ``aws_s3_bucket.output``.
        type: its type, such as ``aws_s3_bucket``.
        action: create, change, replace or destroy.
        why: attributes that force a replacement.
        before: its attributes in the state; None if it does not exist.
        after: its attributes, as far as known before the apply; None if it is destroyed.
        tainted: whether the only reason for its replacement is an interrupted creation.
    """

    address: str
    type: str
    action: str
    why: tuple[str, ...] = ()
    before: Mapping[str, Any] | None = field(default=None, repr=False)
    after: Mapping[str, Any] | None = field(default=None, repr=False)
    tainted: bool = False

    @property
    def loses_state(self) -> bool:
        """Whether its data would be lost."""
        return self.action in ("replace", "destroy") and self.type in STATEFUL_TYPES


@dataclass(frozen=True)
class StackChanges:
    """The changes of one stack.

    Args:
        stack: the stack's id.
        changes: changed resources.
        outputs: names of its outputs before the apply.
        changes_outputs: whether the apply changes only outputs.
        imported: addresses of existing resources that are imported.
    """

    stack: str
    changes: tuple[ResourceChange, ...]
    outputs: frozenset[str] = frozenset()
    changes_outputs: bool = False
    imported: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether the stack is up to date."""
        return not (self.changes or self.changes_outputs or self.imported)

    def count(self, action: str) -> int:
        """Count the resources with an action."""
        if action == "import":
            return len(self.imported)
        return sum(change.action == action for change in self.changes)

    def __str__(self) -> str:
        words = [f"{self.count(action)} to {action}" for action in ACTIONS if self.count(action)]
        return ", ".join(words) or ("outputs change" if self.changes_outputs else "nothing to do")


def read(stack: str, plan: Mapping[str, Any]) -> StackChanges:
    """Read the changes of a plan.

    Args:
        stack: the stack's id.
        plan: the plan in the format of ``terraform show -json``.
    """
    resources = [change for change in plan.get("resource_changes", []) if change["mode"] == "managed"]
    outputs = plan.get("output_changes", {})
    return StackChanges(
        stack=stack,
        changes=tuple(changed for change in resources if (changed := _change(change)) is not None),
        # The plan's "prior_state" is not suitable: it also contains planned values, as far as they are known.
        outputs=frozenset(name for name, output in outputs.items() if output["actions"] != ["create"]),
        changes_outputs=any(output["actions"] != ["no-op"] for output in outputs.values()),
        imported=frozenset(change["address"] for change in resources if change["change"].get("importing")),
    )


def _change(resource: Mapping[str, Any]) -> ResourceChange | None:
    actions = tuple(resource["change"]["actions"])
    if actions in (("no-op",), ("read",)):
        return None
    why = tuple(".".join(str(part) for part in path) for path in resource["change"].get("replace_paths", []))
    action = _ACTIONS.get(actions, "replace")
    change = resource["change"]
    tainted = resource.get("action_reason") == _TAINTED
    return ResourceChange(resource["address"], resource["type"], action, why, change.get("before"), change.get("after"), tainted)


def losses(changes: Iterable[StackChanges], named: Collection[str] = ()) -> list[StatefulLoss]:
    """Return an error per resource with data that the apply would delete or replace.

    Args:
        changes: changes of the stacks.
        named: resources for which that is allowed: ``STACK/ADDRESS``, such as ``checkpoints/aws_s3_bucket.output``.
    """
    return [_loss(stack.stack, change) for stack in changes for change in stack.changes if _lost(stack.stack, change, named)]


def _lost(stack: str, change: ResourceChange, named: Collection[str]) -> bool:
    return change.loses_state and f"{stack}/{change.address}" not in named


def _loss(stack: str, change: ResourceChange) -> StatefulLoss:
    why = f", because {', '.join(change.why)} cannot be changed in place" if change.why else ""
    place = f"{stack}/{change.address}"
    fix = f"revert the change that causes it; to delete it with all its data: --allow-loss {place}"
    return StatefulLoss(path=place, given=f"{change.action}{why}", need="a plan that keeps it", fix=fix)
