"""Node constraints in manifests: label requirements, taints and tolerations."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.sizing.catalog.labels import CAPACITY_TYPE, NODE_POOL, NORMALIZED, ON_DEMAND, RESERVED, SPOT, TENANCY, ZONE_ID, is_restricted
from penstock.sizing.placement.manifest import LabelKey, LabelValue, Manifest, label_key
from penstock.sizing.placement.requirements import Allowed, allowed
from penstock.sizing.placement.taints import Taint, Toleration

_INTEGER = re.compile(r"\+?[0-9]{1,19}", re.ASCII)
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")

# Source: karpenter v1.14.1: requirements on these labels need at least one known value.
_KNOWN_VALUES = {CAPACITY_TYPE: {SPOT, ON_DEMAND, RESERVED}, TENANCY: {"default", "dedicated"}}


def requirement_fault(need: str) -> PydanticCustomError:
    """Raised by a validator for a requirement that Karpenter would reject."""
    return PydanticCustomError("requirement", "{need}", {"need": need})


class NodeSelectorRequirement(Manifest):
    """A pod's requirement on one node label.

    Args:
        key: the label.
        operator: comparison operator.
        values: empty for Exists and DoesNotExist, one integer for Gt and Lt.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[LabelValue, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> NodeSelectorRequirement:
        check_values(self.key, self.operator, self.values)
        return self

    @property
    def allowed(self) -> Allowed:
        """The allowed values."""
        return allowed(self.operator, self.values)


class Requirement(Manifest):
    """One requirement of a NodePool.

    Args:
        key: the label, a well-known or a custom one.
        operator: comparison operator.
        values: empty for Exists and DoesNotExist, one integer for Gt, Lt, Gte and Lte.
        min_values: distinct values that a claim's instance types must have, 1 to 50.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
    values: tuple[LabelValue, ...] = Field(default=(), strict=False)
    min_values: Annotated[int, Field(ge=1, le=50)] | None = None

    @model_validator(mode="after")
    def _karpenter_takes_it(self) -> Requirement:
        check_values(self.key, self.operator, self.values)
        key = NORMALIZED.get(self.key, self.key)
        if is_restricted(key) or key == NODE_POOL:
            raise requirement_fault("a well-known label, or one outside of Karpenter's reserved domains")
        known = _KNOWN_VALUES.get(key)
        if self.operator == "In" and known and not known & set(self.values):
            raise requirement_fault(f"at least one of {', '.join(sorted(known))}")
        if self.operator == "In" and self.min_values is not None and len(self.values) < self.min_values:
            raise requirement_fault(f"at least as many values as minValues = {self.min_values}")
        return self

    @property
    def allowed(self) -> Allowed:
        """The allowed values."""
        return allowed(self.operator, self.values, self.min_values)


def check_values(key: str, operator: str, values: tuple[str, ...]) -> None:
    """Validates that the values match the operator, and that the label is supported."""
    if NORMALIZED.get(key, key) == ZONE_ID:
        raise PydanticCustomError("not_modelled", "{need}", {"need": "the zone's name: zone ids map to different zones in each account"})
    if operator in ("In", "NotIn") and not values:
        raise requirement_fault(f"at least one value with {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        raise requirement_fault(f"no values with {operator}")
    if operator in _BOUNDS and not (len(values) == 1 and _INTEGER.fullmatch(values[0]) and int(values[0]) < 2**63):
        raise requirement_fault(f"a single integer of at least 0, as a string, with {operator}")


class ManifestTaint(Manifest):
    """A taint of a NodePool.

    Args:
        key: key of the taint.
        value: may be empty.
        effect: effect on pods that do not tolerate it.
    """

    key: LabelKey
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

    @property
    def taint(self) -> Taint:
        """The taint."""
        return Taint(self.key, self.value, self.effect)


class ManifestToleration(Manifest):
    """A toleration of a pod.

    Args:
        key: key of the taint; empty: all keys, with Exists.
        operator: Equal by default.
        value: value of the taint, for Equal.
        effect: effect of the taint; empty: all.
        toleration_seconds: affects evictions only.
    """

    key: Annotated[str, AfterValidator(lambda key: label_key(key) if key else key)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: int | None = None

    @model_validator(mode="after")
    def _kubernetes_takes_it(self) -> ManifestToleration:
        if not self.key and self.operator != "Exists":
            raise requirement_fault("operator: Exists if no key is set")
        if self.operator == "Exists" and self.value:
            raise requirement_fault("no value with Exists")
        return self

    @property
    def toleration(self) -> Toleration:
        """The toleration."""
        return Toleration(self.key, self.operator, self.value, self.effect)
