"""IAM's policy simulator, which moto lacks: by moto's own evaluation of policies, with the conditions that a request states."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.iam.exceptions import NotFoundException
from moto.iam.models import IAMBackend
from moto.iam.responses import IamResponse

_DECISIONS = {
    PermissionResult.PERMITTED: "allowed",
    PermissionResult.DENIED: "explicitDeny",
    PermissionResult.NEUTRAL: "implicitDeny",
}


def add() -> None:
    """Patch moto in this process."""
    setattr(IamResponse, "simulate_principal_policy", _simulate)  # noqa: B010


def _simulate(response: IamResponse) -> ActionResult:
    policies = _policies(response.backend, response._get_param("PolicySourceArn"))
    resources = response._get_param("ResourceArns", ["*"])
    entries = response._get_param("ContextEntries", [])
    context = {entry["ContextKeyName"]: entry["ContextKeyValues"][0] for entry in entries}
    results = [
        {"EvalActionName": action, "EvalResourceName": resource, "EvalDecision": _decision(policies, action, resource, context)}
        for action in response._get_param("ActionNames")
        for resource in resources
    ]
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


def _decision(policies: list[Any], action: str, resource: str, context: dict[str, str]) -> str:
    found = {IAMPolicy(policy).is_action_permitted(action, resource, incoming_condition_values=context) for policy in policies}
    first = next((one for one in (PermissionResult.DENIED, PermissionResult.PERMITTED) if one in found), PermissionResult.NEUTRAL)
    return _DECISIONS[first]


def _policies(backend: IAMBackend, arn: str) -> list[Any]:
    """Inline and attached policies of a role or a user; groups are left out."""
    kind, name = arn.split(":", 5)[5].partition("/")[0], arn.rpartition("/")[2]
    if kind == "role":
        inline: list[Any] = [backend.get_role_policy(name, policy)[1] for policy in backend.list_role_policies(name)]
        return inline + list(backend.list_attached_role_policies(name)[0])
    if kind == "user":
        inline = [backend.get_user_policy(name, policy) for policy in backend.list_user_policies(name)]
        return inline + list(backend.list_attached_user_policies(name)[0])
    raise NotFoundException(f"Invalid Entity Arn: {arn} does not clearly define entity type and name.")
