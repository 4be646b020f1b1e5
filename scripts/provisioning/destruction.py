"""A destroy in order: jobs, nodes, charts, then AWS from the last stack to the network; resources with data are kept.

Stacks that don't need each other are destroyed at the same time: deleting a cluster takes as long as deleting brokers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.infra.manifests.deployed_job import namespace
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import bucket_data, eks_cluster, import_blocks, keeping, planned_changes, repository_images
from penstock.scripts.provisioning.api_server import ClusterAddress, cluster_address, reach
from penstock.scripts.provisioning.apply_progress import ApplyProgress
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.deployment import AWS_APPLY_LIMIT_S, PLAN_FILE
from penstock.scripts.provisioning.errors import StatefulLoss
from penstock.scripts.provisioning.keeping import DestroyAction, StackState
from penstock.scripts.provisioning.stack_order import StackOrder
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.terraform import APPLY_LIMIT_S, Applied, Terraform

# Types that AWS deletes only when empty, and how they are emptied.
EMPTYING: Mapping[str, Callable[[AwsAccess, str], int]] = {
    "aws_s3_bucket": bucket_data.empty,
    "aws_ecr_repository": repository_images.empty,
}


@dataclass(frozen=True)
class DestroyedStack:
    """Result of one stack.

    Args:
        stack: the stack's id.
        applied: the destroyed resources; None if there were none.
    """

    stack: str
    applied: Applied | None


class Destruction:
    """The destroy of an environment's stacks.

    Args:
        stacks: stacks of the environment.
        aws: AWS of the environment, with verified credentials.
        steps: receives a line per finished step.
        buckets: names of the buckets to delete with their data.
        others: ``STACK/ADDRESS`` of protected resources to delete.
        limit_s: timeout in seconds of each Terraform call; None: the default of each.
    """

    def __init__(
        self,
        stacks: Sequence[Stack],
        aws: AwsAccess,
        steps: Steps,
        *,
        buckets: Collection[str] = (),
        others: Collection[str] = (),
        limit_s: float | None = None,
    ) -> None:
        self._order = StackOrder(stacks)
        self._stacks = self._order.stacks
        self._aws = aws
        self._steps = steps
        self._buckets = buckets
        self._others = others
        apply_limit_s = APPLY_LIMIT_S if aws.environment.spec.endpoints else AWS_APPLY_LIMIT_S
        self._terraform = {
            stack.name: Terraform(stack.folder, environment=aws.variables, limit_s=limit_s, apply_limit_s=apply_limit_s)
            for stack in self._stacks
        }

    def destroy_actions(self) -> list[DestroyAction]:
        """Plan the destroy of each stack, in dependency order; nothing is changed.

        Raises:
            NothingOfThatName: DEP-012.
            PenstockError: errors of Terraform or AWS.
        """
        read = self._order.each({stack.name: () for stack in self._stacks}, self._state, self._terraform)
        states = [read[stack.name] for stack in self._stacks]
        holds_data = partial(bucket_data.holds_data, self._aws)
        return keeping.destroy_actions(states, buckets=self._buckets, others=self._others, holds_data=holds_data)

    def drain(self, destroy_actions: Sequence[DestroyAction]) -> None:
        """Stop jobs and delete nodes, if the cluster exists and is destroyed; in a cluster that stays, those of the environment.

        Raises:
            ApiServerNotReached: DEP-007.
            StillThere: DEP-011.
            KubernetesRefused: DEP-010.
        """
        existing = self._aws.environment.existing_cluster is not None
        address = self._existing(destroy_actions) if existing else self._cluster(destroy_actions)
        if address is None:
            return
        # Imported here: an environment without a cluster needs no Kubernetes client.
        from penstock.scripts.provisioning.draining import Own, drain
        from penstock.scripts.provisioning.kubernetes_access import connected, eks_token

        reach(address, self._aws.environment)
        with connected(address, partial(eks_token, self._aws, address.name)) as api:
            own = Own(self._jobs(destroy_actions), self._aws.environment.release("node-pools")) if existing else None
            drain(api, self._steps, own)

    def destroy(self, destroy_actions: Sequence[DestroyAction]) -> list[DestroyedStack]:
        """Destroy the stacks, each after those that need it.

        After a failure the stacks that the failed one needs are left out, and the others are destroyed.

        Returns:
            What was done to each stack, last to first.

        Raises:
            StatefulLoss: DEP-005, Terraform would destroy a resource that is kept.
            PenstockError: errors of Terraform or AWS.
        """
        by_name = {action.name: action for action in destroy_actions}
        done = self._order.each(self._order.destroyed_after(), lambda stack: self._destroyed(by_name[stack.name]), self._terraform)
        return [done[action.name] for action in reversed(destroy_actions)]

    def _state(self, stack: Stack) -> StackState:
        with self._steps.at(f"{stack.name} ", "reading the state") as step:
            import_blocks.write(stack.folder, {})
            resources = tuple(self._terraform[stack.name].resources())
            step.said = f"{len(resources)} resources"
        return StackState(stack, resources, keeping.protected(stack), stack.resource_inputs)

    def _cluster(self, destroy_actions: Sequence[DestroyAction]) -> ClusterAddress | None:
        """The API server of a cluster that exists and is destroyed; None otherwise."""
        for action in destroy_actions:
            if any(one.type == "aws_eks_cluster" and one.address not in action.kept for one in action.state.resources):
                return cluster_address(self._terraform[action.name].output()) if self._aws.environment.spec.endpoints is None else None
        return None

    def _existing(self, destroy_actions: Sequence[DestroyAction]) -> ClusterAddress | None:
        """The API server of a cluster that stays and has releases of the environment; None otherwise."""
        released = any(one.type == "helm_release" for action in destroy_actions for one in action.state.resources)
        address = eks_cluster.reached(self._aws) if released else None
        return address if isinstance(address, ClusterAddress) else None

    def _jobs(self, destroy_actions: Sequence[DestroyAction]) -> list[str]:
        """The jobs of the environment that are deployed: the stack of their releases has one for each, named as its namespace."""
        resources = (one for action in destroy_actions for one in action.state.resources)
        releases = [str(one.values.get("name", "")) for one in resources if one.type == "helm_release"]
        return [name.removeprefix(namespace("")) for name in releases if name.startswith(namespace(""))]

    def _destroyed(self, action: DestroyAction) -> DestroyedStack:
        if not action.destroyed:
            return DestroyedStack(action.name, None)
        self._empty_named(action)
        unprotect(action.state.stack)
        terraform, file = self._terraform[action.name], action.state.stack.folder / PLAN_FILE
        targets = action.destroyed if action.kept else ()
        changes = planned_changes.read(action.name, terraform.plan_to(file, destroy=True, targets=targets))
        self._check(action, changes)
        progress = ApplyProgress(action.name, len(changes.changes), self._steps)
        with progress.shown():
            applied = terraform.apply_plan(file, progress.take)
        self._steps.line(f"{action.name} ", str(applied))
        return DestroyedStack(action.name, applied)

    def _empty_named(self, action: DestroyAction) -> None:
        for one in action.state.resources:
            empty = EMPTYING.get(one.type)
            named = one.bucket in self._buckets or f"{action.name}/{one.address}" in self._others
            if empty is not None and named and one.address not in action.kept:
                with self._steps.at(f"{action.name} ", f"emptying {one.whole}") as step:
                    step.said = f"{one.whole} emptied: {empty(self._aws, str(one.whole)):,}"

    def _check(self, action: DestroyAction, changes: planned_changes.StackChanges) -> None:
        """Check that the plan keeps what must be kept; dependencies that only Terraform knows would show here."""
        for change in changes.changes:
            if change.address in action.kept or change.action != "destroy":
                place = f"{action.name}/{change.address}"
                raise StatefulLoss(
                    path=place, given=change.action, need="the resource to be kept", fix="report a bug, with the stack's cdk.tf.json"
                )


def unprotect(stack: Stack) -> None:
    """Remove prevent_destroy from a synthesized stack: the destroy's targets decide what is kept, and the next synth protects again."""
    content = stack.content()
    for named in content.get("resource", {}).values():
        for arguments in named.values():
            arguments.get("lifecycle", {}).pop("prevent_destroy", None)
    (stack.folder / "cdk.tf.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
