"""What a destroy keeps: buckets with data, protected resources, and everything that these depend on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.scripts.provisioning.errors import NothingOfThatName
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.state_resource import StateResource

_BUCKET = "aws_s3_bucket"
_REPOSITORY = "aws_ecr_repository"
# A key is kept as long as anything that it encrypts; AWS deletes it only weeks later.
_KEY = "aws_kms_key"


@dataclass(frozen=True)
class StackState:
    """The current resources of a stack.

    Args:
        stack: the synthesized stack.
        resources: resources in its state.
        protected: addresses with prevent_destroy.
        uses: other stacks that a resource refers to, by its address.
    """

    stack: Stack
    resources: tuple[StateResource, ...]
    protected: frozenset[str]
    uses: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class DestroyAction:
    """What is destroyed and kept of a stack.

    Args:
        state: its current resources.
        kept: addresses that are kept.
        why: reason of each address that is kept for its own sake; the others are its dependencies.
    """

    state: StackState
    kept: frozenset[str]
    why: Mapping[str, str]

    @property
    def name(self) -> str:
        """The stack's id."""
        return self.state.stack.name

    @property
    def destroyed(self) -> tuple[str, ...]:
        """Addresses that are destroyed."""
        return tuple(resource.address for resource in self.state.resources if resource.address not in self.kept)


def protected(stack: Stack) -> frozenset[str]:
    """Return the addresses that a stack protects with prevent_destroy."""
    return frozenset(address for address, arguments in stack.resources() if arguments.get("lifecycle", {}).get("prevent_destroy"))


def destroy_actions(
    states: Sequence[StackState], *, buckets: Collection[str], others: Collection[str], holds_data: Callable[[str], bool]
) -> list[DestroyAction]:
    """Decide what is destroyed and kept of each stack.

    Args:
        states: all stacks, in dependency order.
        buckets: names of the buckets to delete with their data.
        others: ``STACK/ADDRESS`` of protected resources to delete.
        holds_data: whether a bucket contains data.

    Raises:
        NothingOfThatName: DEP-012.
    """
    _check_names(states, buckets, others)
    decided: dict[str, DestroyAction] = {}
    needed: set[str] = set()
    # Last to first: what is kept needs the stacks that it depends on.
    for state in reversed(states):
        why = _kept_for_itself(state, buckets, others, holds_data)
        kept = _with_needs(state.resources, why, buckets)
        if state.stack.name in needed:
            kept = frozenset(resource.address for resource in state.resources)
        needed.update(other for address in kept for other in state.uses.get(address, ()))
        decided[state.stack.name] = DestroyAction(state, kept, why)
    return [decided[state.stack.name] for state in states]


def _check_names(states: Iterable[StackState], buckets: Collection[str], others: Collection[str]) -> None:
    known_buckets = {one.bucket for state in states for one in state.resources if one.type == _BUCKET}
    known = {f"{state.stack.name}/{one.address}" for state in states for one in state.resources}
    for option, given, existing in (("--delete-bucket", buckets, known_buckets), ("--delete", others, known)):
        for name in given:
            if name not in existing:
                need = f"one of {', '.join(sorted(filter(None, existing)))}" if existing else "a resource created by the stacks"
                raise NothingOfThatName(path=option, given=name, need=need, fix="omit it if it is already deleted")


def _kept_for_itself(
    state: StackState, buckets: Collection[str], others: Collection[str], holds_data: Callable[[str], bool]
) -> dict[str, str]:
    why: dict[str, str] = {}
    for one in state.resources:
        place = f"{state.stack.name}/{one.address}"
        if one.type == _BUCKET:
            name = str(one.bucket)
            if name not in buckets and (one.address in state.protected or holds_data(name)):
                reason = "it holds data" if one.address not in state.protected else "the environment protects it"
                why[one.address] = f"{reason}; --delete-bucket {name}"
        elif one.address in state.protected and one.type != _KEY and place not in others:
            why[one.address] = f"the environment protects it; --delete {place}"
    return why


def _with_needs(resources: Sequence[StateResource], roots: Iterable[str], buckets: Collection[str]) -> frozenset[str]:
    """Kept resources, the settings of each kept bucket or repository, and their dependencies."""
    by_address = {one.address: one for one in resources}
    going = {one.address for one in resources if one.type == _BUCKET and one.bucket in buckets}
    kept: set[str] = set()
    open_ends = [address for address in roots if address in by_address]
    while open_ends:
        address = open_ends.pop()
        if address in kept:
            continue
        kept.add(address)
        one = by_address[address]
        open_ends += [other for other in one.depends_on if other in by_address]
        if one.type in (_BUCKET, _REPOSITORY):
            settings = (other for other in resources if other.whole == one.whole)
            open_ends += [other.address for other in settings if not going & set(other.depends_on)]
    return frozenset(kept)
