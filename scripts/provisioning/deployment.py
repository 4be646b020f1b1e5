"""A deploy: all stacks are planned, forbidden changes are refused, and each stack is applied after its dependencies.

Stacks that don't wait for each other are planned and applied at the same time: MSK's brokers and EKS take longest, and need each other not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from penstock.infra.broker_plan import fewer_brokers
from penstock.infra.errors import UnknownStack
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import import_blocks, planned_changes
from penstock.scripts.provisioning.api_server import ClusterAddress, cluster_address, reach
from penstock.scripts.provisioning.apply_progress import ApplyProgress
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import ApiServerNotReached
from penstock.scripts.provisioning.planned_changes import StackChanges
from penstock.scripts.provisioning.stack_order import StackOrder
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.terraform import APPLY_LIMIT_S, Applied, Terraform
from penstock.sizing.errors import PenstockError, raise_all

# MSK's brokers take up to an hour, EKS a quarter of an hour; the provider's own timeouts are shorter.
AWS_APPLY_LIMIT_S = 3 * 3600
# Actions of a change that create a resource.
CREATING = ("create", "replace")
PLAN_FILE = "penstock.tfplan"

# A check of a stack's plan in the format of ``terraform show -json``; returns an error per forbidden change.
Check = Callable[[Mapping[str, Any]], Sequence[PenstockError]]


@dataclass(frozen=True)
class Deferred:
    """A stack that cannot be planned yet.

    Args:
        stack: the stack's id.
        waits_for: what must exist first.
        resources: number of its resources.
    """

    stack: str
    waits_for: str
    resources: int

    def __str__(self) -> str:
        return f"{self.resources} resources, planned once {self.waits_for}"


@dataclass(frozen=True)
class DeployedStack:
    """Result of one stack.

    Args:
        stack: the stack's id.
        changes: the planned changes.
        applied: the applied changes; None if the stack was up to date.
    """

    stack: str
    changes: StackChanges
    applied: Applied | None


@dataclass
class Deployment:
    """The deploy of an environment's stacks.

    Args:
        stacks: the stacks in order of application, with all their dependencies.
        aws: AWS of the environment, with verified credentials.
        steps: receives a line per finished step.
        limit_s: timeout in seconds of each Terraform call; None: the default of each.
        allowed_losses: resources with data that may be deleted or replaced: ``STACK/ADDRESS``.
        checks: checks of each plan, in addition to the one for resources with data.
        look_only: whether nothing is written, not even to untaint a resource.
    """

    stacks: Sequence[Stack]
    aws: AwsAccess
    steps: Steps
    limit_s: float | None = None
    allowed_losses: Collection[str] = ()
    checks: Sequence[Check] = (fewer_brokers,)
    look_only: bool = False
    planned: dict[str, StackChanges | Deferred] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limit_s = APPLY_LIMIT_S if self.aws.environment.spec.endpoints else AWS_APPLY_LIMIT_S
        self._order = StackOrder(self.stacks)
        self.stacks = self._order.stacks
        self._terraform = {
            stack.name: Terraform(stack.folder, environment=self.aws.variables, limit_s=self.limit_s, apply_limit_s=limit_s)
            for stack in self.stacks
        }
        self._applied: set[str] = set()
        self._reaching = Lock()

    def terraform(self, stack: str) -> Terraform:
        """Return Terraform for one of the stacks."""
        return self._terraform[stack]

    def plan(self) -> dict[str, StackChanges | Deferred]:
        """Plan everything that can be planned before the first apply.

        Returns:
            Changes by stack, in order.

        Raises:
            StatefulLoss: DEP-005; several are raised as `Faults`.
            FewerBrokers: INF-042.
            PenstockError: errors of Terraform or AWS.
        """
        self._order.each(self._order.planned_after(), self._plan, self._terraform)
        # In order, whichever was planned first.
        self.planned = {stack.name: self.planned[stack.name] for stack in self.stacks}
        changes = [planned for planned in self.planned.values() if isinstance(planned, StackChanges)]
        raise_all(planned_changes.losses(changes, self.allowed_losses))
        return self.planned

    @property
    def nothing_to_do(self) -> bool:
        """Whether every stack is planned and up to date."""
        return all(isinstance(stack, StackChanges) and stack.empty for stack in self.planned.values())

    def to_create(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Type and arguments of the AWS resources that an apply creates, as far as they are planned; all of a stack that is not."""
        for stack in self.stacks:
            changes = self.planned[stack.name]
            created = None if isinstance(changes, Deferred) else {one.address for one in changes.changes if one.action in CREATING}
            for address, arguments in [] if stack.on_kubernetes else stack.resources():
                if created is None or address in created:
                    yield address.partition(".")[0], arguments

    @property
    def applied(self) -> tuple[str, ...]:
        """The stacks that this deploy has applied so far."""
        return tuple(stack.name for stack in self.stacks if stack.name in self._applied)

    def apply(self) -> list[DeployedStack]:
        """Apply the plans; a stack is planned again if one of its dependencies was applied meanwhile.

        After a failure the stacks that depend on the failed one are left out, and the others are applied.

        Raises:
            StatefulLoss: DEP-005.
            ApiServerNotReached: DEP-007, before the first charts stack.
            PenstockError: errors of Terraform.
        """
        done = self._order.each(self._order.applied_after(), self._deployed, self._terraform)
        return [done[stack.name] for stack in self.stacks]

    def _plan(self, stack: Stack) -> None:
        waits_for = self._waits_for(stack)
        if waits_for is not None:
            self.planned[stack.name] = Deferred(stack.name, waits_for, len(stack.resources()))
            self.steps.line(f"{stack.name} ", str(self.planned[stack.name]))
        else:
            self.planned[stack.name] = self._planned(stack)

    def _deployed(self, stack: Stack) -> DeployedStack:
        changes = self.planned[stack.name]
        if isinstance(changes, Deferred) or self._rests_on_applied(stack):
            if stack.on_kubernetes:
                self._reach()
            changes = self._planned(stack)
            raise_all(planned_changes.losses([changes], self.allowed_losses))
        if changes.empty:
            return DeployedStack(stack.name, changes, None)
        terraform = self._terraform[stack.name]
        progress = ApplyProgress(stack.name, len(changes.changes), self.steps)
        with progress.shown():
            applied = terraform.apply_plan(stack.folder / PLAN_FILE, progress.take)
        import_blocks.write(stack.folder, {})
        self._applied.add(stack.name)
        self.steps.line(f"{stack.name} ", str(applied))
        return DeployedStack(stack.name, changes, applied)

    def _planned(self, stack: Stack) -> StackChanges:
        import_blocks.write(stack.folder, {})
        with self.steps.at(f"{stack.name} ", "planning") as step:
            changes = self._read(stack)
            unfinished = self._unfinished(changes)
            if unfinished and self.look_only:
                # They are completed, not replaced; only a deploy records that in the state.
                changes = replace(changes, changes=tuple(one for one in changes.changes if one.address not in unfinished))
            elif unfinished:
                for address in unfinished:
                    self._terraform[stack.name].untaint(address)
                changes = self._read(stack)
            imported = {} if stack.on_kubernetes else import_blocks.importable(self.aws, changes.changes)
            if imported:
                import_blocks.write(stack.folder, imported)
                changes = self._read(stack)
            step.said = str(changes)
        return changes

    def _unfinished(self, changes: StackChanges) -> list[str]:
        """Resources with data whose creation was interrupted; those named as losses are replaced, as requested."""
        cut_short = [change.address for change in changes.changes if change.loses_state and change.tainted]
        return [address for address in cut_short if f"{changes.stack}/{address}" not in self.allowed_losses]

    def _read(self, stack: Stack) -> StackChanges:
        plan = self._terraform[stack.name].plan_to(stack.folder / PLAN_FILE)
        raise_all(error for check in self.checks for error in check(plan))
        return planned_changes.read(stack.name, plan)

    def _waits_for(self, stack: Stack) -> str | None:
        """What must be done before the stack can be planned; None if nothing."""
        for other, outputs in stack.inputs.items():
            before = self.planned[other]
            if isinstance(before, Deferred) or not before.outputs.issuperset(outputs):
                return f"{other} is applied"
        if stack.on_kubernetes:
            try:
                self._reach()
            except ApiServerNotReached:
                return "the Kubernetes API server is reached"
        return None

    def _rests_on_applied(self, stack: Stack) -> bool:
        return any(name in self._applied for name in _all_dependencies(stack, self.stacks))

    def _reach(self) -> None:
        # Several stacks have charts, and Terraform does one thing at a time in the stack of the cluster.
        with self._reaching:
            address = self.cluster()
            if address is not None:
                reach(address, self.aws.environment)

    def cluster(self) -> ClusterAddress | None:
        """The Kubernetes API server from the outputs of its stack; None if it does not exist."""
        for stack in self.stacks:
            if "cluster_endpoint" in stack.content().get("output", {}):
                return cluster_address(self._terraform[stack.name].output())
        return None


def wanted(stacks: Sequence[Stack], names: Sequence[str]) -> list[Stack]:
    """Return the stacks of these names, with all their dependencies.

    Args:
        stacks: all stacks of the environment.
        names: names of the wanted stacks; empty: all.

    Raises:
        UnknownStack: INF-007.
    """
    known = [stack.name for stack in stacks]
    raise_all(
        UnknownStack(path="STACK", given=name, need=f"one of {', '.join(known)}", fix="list them with: penstock synth ENV")
        for name in names
        if name not in known
    )
    if not names:
        return list(stacks)
    taken = {*names, *(other for stack in stacks if stack.name in names for other in _all_dependencies(stack, stacks))}
    return [stack for stack in stacks if stack.name in taken]


def _all_dependencies(stack: Stack, stacks: Sequence[Stack]) -> set[str]:
    by_name = {other.name: other for other in stacks}
    names: set[str] = set()
    open_ends = list(stack.dependencies)
    while open_ends:
        name = open_ends.pop()
        if name not in names:
            names.add(name)
            open_ends.extend(by_name[name].dependencies)
    return names


def outputs(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """The outputs of each stack, without cdktf's cross-stack outputs."""
    by_stack: dict[str, dict[str, Any]] = {}
    for stack in deployment.stacks:
        if any(not name.startswith("cross-stack-") for name in stack.content().get("output", {})):
            said = deployment.terraform(stack.name).output()
            by_stack[stack.name] = {name: value for name, value in said.items() if not name.startswith("cross-stack-")}
    return by_stack
