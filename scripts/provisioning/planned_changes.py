"""What a plan of Terraform's would do to a stack, and whether that may be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.scripts.provisioning.errors import StatefulLoss

# What holds data, or opens it: gone, it can't be made again. A plan that deletes or replaces one is refused unless it is named.
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
    """What is to be done to one resource.

    Args:
        address: as ``aws_s3_bucket.output``.
        type: as ``aws_s3_bucket``.
        action: create, change, replace or destroy.
        why: the attributes that force a replacement.
        before: its attributes as the state has them; None: it is not there.
        after: as far as they are known before the apply; None: it will not be there.
        tainted: whether Terraform replaces it for no other reason than that its making did not come to its end.
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
        """Whether what it holds would be gone."""
        return self.action in ("replace", "destroy") and self.type in STATEFUL_TYPES


@dataclass(frozen=True)
class StackChanges:
    """What is to be done to one stack.

    Args:
        stack: its id.
        changes: to its resources, without those that stay.
        outputs: names of its outputs before the apply.
        changes_outputs: whether the apply changes an output alone.
        imported: addresses of resources that are there already and are taken over.
    """

    stack: str
    changes: tuple[ResourceChange, ...]
    outputs: frozenset[str] = frozenset()
    changes_outputs: bool = False
    imported: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.changes or self.changes_outputs or self.imported)

    def count(self, action: str) -> int:
        """How many resources an action is done to."""
        if action == "import":
            return len(self.imported)
        return sum(change.action == action for change in self.changes)

    def __str__(self) -> str:
        words = [f"{self.count(action)} to {action}" for action in ACTIONS if self.count(action)]
        return ", ".join(words) or ("outputs change" if self.changes_outputs else "nothing to do")


def read(stack: str, plan: Mapping[str, Any]) -> StackChanges:
    """The changes of a plan.

    Args:
        stack: the stack's id.
        plan: what ``terraform show -json`` says of it.
    """
    resources = [change for change in plan.get("resource_changes", []) if change["mode"] == "managed"]
    outputs = plan.get("output_changes", {})
    return StackChanges(
        stack=stack,
        changes=tuple(found for change in resources if (found := _change(change)) is not None),
        # Those of the plan's "prior_state" would not do: it has what is to come, too, as far as it is known.
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
    """An error for each resource that holds data and would not outlive the apply.

    Args:
        changes: of the stacks.
        named: those that may go: ``STACK/ADDRESS``, as ``checkpoints/aws_s3_bucket.output``.
    """
    return [_loss(stack.stack, change) for stack in changes for change in stack.changes if _lost(stack.stack, change, named)]


def _lost(stack: str, change: ResourceChange, named: Collection[str]) -> bool:
    return change.loses_state and f"{stack}/{change.address}" not in named


def _loss(stack: str, change: ResourceChange) -> StatefulLoss:
    why = f", because {', '.join(change.why)} cannot be changed in place" if change.why else ""
    place = f"{stack}/{change.address}"
    fix = f"revert the change that causes it; to delete it with all its data: --allow-loss {place}"
    return StatefulLoss(path=place, given=f"{change.action}{why}", need="a plan that keeps it", fix=fix)
