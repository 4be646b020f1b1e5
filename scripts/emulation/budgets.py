"""AWS Budgets, instead of moto's, which can neither create a budget with notifications, as Terraform does, nor update one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.budgets.models import budgets_backends

from penstock.scripts.emulation.checked_service import Answer, Asked, CheckedService, Operation, Place, Refused

# Source: AWS Billing user guide, "Quotas": notifications per budget, and subscribers per notification by their type.
NOTIFICATIONS = 10
SUBSCRIBERS: Mapping[str, int] = {"EMAIL": 10, "SNS": 1}
_ADDRESSES: Mapping[str, str] = {"EMAIL": r"[^@\s]+@[^@\s]+\.[^@\s]+", "SNS": r"arn:[^:]+:sns:[^:]+:\d{12}:.+"}
# Default end and cost types of a budget. Source: AWS Budgets' API reference, TimePeriod and CostTypes.
FOR_EVER = datetime(2087, 6, 15, tzinfo=UTC)
_COUNTED = ("Credit", "Discount", "OtherSubscription", "Recurring", "Refund", "Subscription", "Support", "Tax", "Upfront")
_COST_TYPES = {**{f"Include{what}": True for what in _COUNTED}, "UseAmortized": False, "UseBlended": False}
_NOTHING = {"Amount": "0.0", "Unit": "USD"}
_LIMITS = ("BudgetLimit", "PlannedBudgetLimits", "AutoAdjustData")


@dataclass
class Notification:
    """A notification of a budget.

    Args:
        about: its threshold, as described by the API.
        subscribers: its subscribers.
    """

    about: dict[str, Any]
    subscribers: list[dict[str, str]]


@dataclass
class Budget:
    """A budget.

    Args:
        about: its description in the API.
        tags: its tags.
        notifications: its notifications.
    """

    about: dict[str, Any]
    tags: dict[str, str]
    notifications: list[Notification] = field(default_factory=list)


@dataclass
class Budgets:
    """The budgets of an account.

    Args:
        place: the account.
        held: budgets by name.
    """

    place: Place
    held: dict[str, Budget] = field(default_factory=dict)

    def budget(self, asked: Asked) -> Budget:
        """Return the budget that a request names.

        Raises:
            Refused: NotFoundException, AccessDeniedException.
        """
        if asked["AccountId"] != self.place.account:
            raise Refused("AccessDeniedException", f"The account {asked['AccountId']} is another one's")
        name = asked.get("BudgetName") or asked["NewBudget"]["BudgetName"]
        if name not in self.held:
            raise Refused("NotFoundException", f"Unable to get budget: {name} - the budget doesn't exist.")
        return self.held[name]


def create_budget(budgets: Budgets, asked: Asked) -> Answer:
    """CreateBudget: with its notifications."""
    name = asked["Budget"]["BudgetName"]
    if asked["AccountId"] != budgets.place.account:
        raise Refused("AccessDeniedException", f"The account {asked['AccountId']} is another one's")
    if name in budgets.held:
        raise Refused("DuplicateRecordException", f"Error creating budget: {name} - the budget already exists.")
    made = Budget(_described(asked["Budget"]), {tag["Key"]: tag["Value"] for tag in asked.get("ResourceTags", ())})
    for one in asked.get("NotificationsWithSubscribers", ()):
        _add(made, one["Notification"], one["Subscribers"])
    budgets.held[name] = made
    return {}


def describe_budget(budgets: Budgets, asked: Asked) -> Answer:
    """DescribeBudget."""
    return {"Budget": budgets.budget(asked).about}


def describe_budgets(budgets: Budgets, asked: Asked) -> Answer:
    """DescribeBudgets."""
    return {"Budgets": [budget.about for budget in budgets.held.values()]}


def update_budget(budgets: Budgets, asked: Asked) -> Answer:
    """UpdateBudget: everything except its name and notifications."""
    budget = budgets.budget(asked)
    budget.about = {
        **_described(asked["NewBudget"]),
        "TimePeriod": {**budget.about["TimePeriod"], **asked["NewBudget"].get("TimePeriod", {})},
    }
    return {}


def delete_budget(budgets: Budgets, asked: Asked) -> Answer:
    """DeleteBudget."""
    del budgets.held[budgets.budget(asked).about["BudgetName"]]
    return {}


def create_notification(budgets: Budgets, asked: Asked) -> Answer:
    """CreateNotification."""
    _add(budgets.budget(asked), asked["Notification"], asked["Subscribers"])
    return {}


def describe_notifications_for_budget(budgets: Budgets, asked: Asked) -> Answer:
    """DescribeNotificationsForBudget."""
    return {"Notifications": [one.about for one in budgets.budget(asked).notifications]}


def delete_notification(budgets: Budgets, asked: Asked) -> Answer:
    """DeleteNotification: with its subscribers."""
    budget = budgets.budget(asked)
    budget.notifications.remove(_notification(budget, asked["Notification"]))
    return {}


def create_subscriber(budgets: Budgets, asked: Asked) -> Answer:
    """CreateSubscriber."""
    notification = _notification(budgets.budget(asked), asked["Notification"])
    if asked["Subscriber"] in notification.subscribers:
        raise Refused("DuplicateRecordException", "The subscriber already exists.")
    notification.subscribers = _subscribers([*notification.subscribers, asked["Subscriber"]])
    return {}


def describe_subscribers_for_notification(budgets: Budgets, asked: Asked) -> Answer:
    """DescribeSubscribersForNotification."""
    return {"Subscribers": _notification(budgets.budget(asked), asked["Notification"]).subscribers}


def delete_subscriber(budgets: Budgets, asked: Asked) -> Answer:
    """DeleteSubscriber: deleting the last one also deletes the notification."""
    budget = budgets.budget(asked)
    notification = _notification(budget, asked["Notification"])
    if asked["Subscriber"] not in notification.subscribers:
        raise Refused("NotFoundException", "The subscriber doesn't exist.")
    notification.subscribers.remove(asked["Subscriber"])
    if not notification.subscribers:
        budget.notifications.remove(notification)
    return {}


def tag_resource(budgets: Budgets, asked: Asked) -> Answer:
    """TagResource."""
    _tagged(budgets, asked).tags.update({tag["Key"]: tag["Value"] for tag in asked["ResourceTags"]})
    return {}


def untag_resource(budgets: Budgets, asked: Asked) -> Answer:
    """UntagResource."""
    for key in asked["ResourceTagKeys"]:
        _tagged(budgets, asked).tags.pop(key, None)
    return {}


def list_tags_for_resource(budgets: Budgets, asked: Asked) -> Answer:
    """ListTagsForResource."""
    return {"ResourceTags": [{"Key": key, "Value": value} for key, value in _tagged(budgets, asked).tags.items()]}


def _described(asked: Mapping[str, Any]) -> dict[str, Any]:
    if not any(asked.get(limit) for limit in _LIMITS):
        message = "please provide one of the followings: Budget Limit/ Planned Budget Limit/ Auto Adjust Data"
        raise Refused("InvalidParameterException", f"Unable to create/update budget - {message}")
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    cost = {"CostTypes": {**_COST_TYPES, **asked.get("CostTypes", {})}} if asked["BudgetType"] == "COST" else {}
    return {
        **asked,
        **cost,
        "TimePeriod": {"Start": month, "End": FOR_EVER, **asked.get("TimePeriod", {})},
        "CalculatedSpend": {"ActualSpend": _NOTHING},
        "LastUpdatedTime": datetime.now(UTC),
    }


def _add(budget: Budget, asked: Mapping[str, Any], subscribers: Sequence[Mapping[str, str]]) -> None:
    about = {"ThresholdType": "PERCENTAGE", **asked}
    if any(_same(one.about, about) for one in budget.notifications):
        raise Refused("DuplicateRecordException", "Error creating notification - the notification already exists.")
    if len(budget.notifications) == NOTIFICATIONS:
        raise Refused("CreationLimitExceededException", f"A budget has at most {NOTIFICATIONS} notifications")
    budget.notifications.append(Notification(about, _subscribers(subscribers)))


def _subscribers(asked: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    for kind, most in SUBSCRIBERS.items():
        addresses = [one["Address"] for one in asked if one["SubscriptionType"] == kind]
        if len(addresses) > most:
            raise Refused("InvalidParameterException", f"A notification has at most {most} subscribers of the type {kind}")
        for address in addresses:
            if not re.fullmatch(_ADDRESSES[kind], address):
                raise Refused("InvalidParameterException", f"{address} is no address of the type {kind}")
    if not asked:
        raise Refused("InvalidParameterException", "A notification needs a subscriber")
    return [dict(one) for one in asked]


def _notification(budget: Budget, asked: Mapping[str, Any]) -> Notification:
    for one in budget.notifications:
        if _same(one.about, {"ThresholdType": "PERCENTAGE", **asked}):
            return one
    raise Refused("NotFoundException", "Unable to get notification - the notification doesn't exist.")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two descriptions identify the same notification, regardless of its state."""
    keys = ("NotificationType", "ComparisonOperator", "Threshold", "ThresholdType")
    return all(one[key] == other[key] for key in keys)


def _tagged(budgets: Budgets, asked: Asked) -> Budget:
    arn = asked["ResourceARN"]
    prefix = f"arn:{budgets.place.partition}:budgets::{budgets.place.account}:budget/"
    name = arn.removeprefix(prefix)
    if not arn.startswith(prefix) or name not in budgets.held:
        raise Refused("NotFoundException", f"Resource not found: {arn}")
    return budgets.held[name]


OPERATIONS: Mapping[str, Operation] = {
    "CreateBudget": create_budget,
    "DescribeBudget": describe_budget,
    "DescribeBudgets": describe_budgets,
    "UpdateBudget": update_budget,
    "DeleteBudget": delete_budget,
    "CreateNotification": create_notification,
    "DescribeNotificationsForBudget": describe_notifications_for_budget,
    "DeleteNotification": delete_notification,
    "CreateSubscriber": create_subscriber,
    "DescribeSubscribersForNotification": describe_subscribers_for_notification,
    "DeleteSubscriber": delete_subscriber,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "ListTagsForResource": list_tags_for_resource,
}

SERVICE = CheckedService(
    "budgets", hosts=r"https?://budgets\.amazonaws\.com", operations=OPERATIONS, state=Budgets, malformed="InvalidParameterException"
)


def add() -> None:
    """Serve AWS Budgets in this process."""
    SERVICE.take_over(budgets_backends)
