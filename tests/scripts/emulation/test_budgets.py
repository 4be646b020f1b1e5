from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import Account, name, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "InvalidParameterException")
ALERT = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80.0, "ThresholdType": "PERCENTAGE"}
MAIL = {"SubscriptionType": "EMAIL", "Address": "a@example.com"}
ACCOUNT = "123456780000"


def _budget(**asked: Any) -> dict[str, Any]:
    limit = {"Amount": "100", "Unit": "USD"}
    return {"BudgetName": name("budget"), "BudgetLimit": limit, "TimeUnit": "MONTHLY", "BudgetType": "COST", **asked}


def _made(account: Account, notifications: list[dict[str, Any]], **asked: Any) -> dict[str, str]:
    budget = _budget(**asked)
    account.client("budgets").create_budget(AccountId=ACCOUNT, Budget=budget, NotificationsWithSubscribers=notifications)
    return {"AccountId": ACCOUNT, "BudgetName": budget["BudgetName"]}


def test_a_budget_has_its_notifications_and_subscribers(account: Account) -> None:
    budgets = account.client("budgets")
    named = _made(account, [{"Notification": ALERT, "Subscribers": [MAIL]}])
    assert budgets.describe_budget(**named)["Budget"]["BudgetLimit"]["Amount"] == "100"
    assert budgets.describe_notifications_for_budget(**named)["Notifications"] == [ALERT]
    assert budgets.describe_subscribers_for_notification(**named, Notification=ALERT)["Subscribers"] == [MAIL]


def test_a_budget_changes_its_limit_and_keeps_its_notifications(account: Account) -> None:
    budgets = account.client("budgets")
    named = _made(account, [{"Notification": ALERT, "Subscribers": [MAIL]}])
    wanted = _budget(BudgetName=named["BudgetName"], BudgetLimit={"Amount": "200", "Unit": "USD"})
    budgets.update_budget(AccountId=ACCOUNT, NewBudget=wanted)
    assert budgets.describe_budget(**named)["Budget"]["BudgetLimit"]["Amount"] == "200"
    assert budgets.describe_notifications_for_budget(**named)["Notifications"] == [ALERT]


@pytest.mark.parametrize(
    "subscribers",
    [
        [],
        [{"SubscriptionType": "EMAIL", "Address": "nobody"}],
        [{"SubscriptionType": "SNS", "Address": "a@example.com"}],
        [{"SubscriptionType": "PIGEON", "Address": "a@example.com"}],
        [{**MAIL, "Address": f"a{number}@example.com"} for number in range(11)],
    ],
    ids=lambda subscribers: str(len(subscribers)) + str(subscribers[:1]),
)
def test_subscribers_that_can_not_be_are_refused(account: Account, subscribers: list[dict[str, str]]) -> None:
    assert refusal(lambda: _made(account, [{"Notification": ALERT, "Subscribers": subscribers}])) == INVALID


def test_a_budget_that_can_not_be_is_refused(account: Account) -> None:
    assert refusal(lambda: _made(account, [], BudgetLimit={})) == INVALID
    assert refusal(lambda: _made(account, [], TimeUnit="HOURLY")) == INVALID
    named = _made(account, [])
    assert refusal(lambda: _made(account, [], BudgetName=named["BudgetName"])) == (400, "DuplicateRecordException")


def test_what_is_not_there_is_not_found(account: Account) -> None:
    budgets, named = account.client("budgets"), _made(account, [])
    gone = (400, "NotFoundException")
    assert refusal(lambda: budgets.delete_notification(**named, Notification=ALERT)) == gone
    budgets.delete_budget(**named)
    assert refusal(lambda: budgets.describe_budget(**named)) == gone
    assert refusal(lambda: budgets.delete_budget(**named)) == gone


def test_the_last_subscriber_takes_the_notification_with_it(account: Account) -> None:
    budgets = account.client("budgets")
    named = _made(account, [{"Notification": ALERT, "Subscribers": [MAIL]}])
    other = {**MAIL, "Address": "b@example.com"}
    budgets.create_subscriber(**named, Notification=ALERT, Subscriber=other)
    for one in (MAIL, other):
        budgets.delete_subscriber(**named, Notification=ALERT, Subscriber=one)
    assert budgets.describe_notifications_for_budget(**named)["Notifications"] == []


def test_a_budget_has_tags(account: Account) -> None:
    budgets, named = account.client("budgets"), _made(account, [])
    arn = f"arn:aws:budgets::{ACCOUNT}:budget/{named['BudgetName']}"
    budgets.tag_resource(ResourceARN=arn, ResourceTags=[{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}])
    budgets.untag_resource(ResourceARN=arn, ResourceTagKeys=["a"])
    assert budgets.list_tags_for_resource(ResourceARN=arn)["ResourceTags"] == [{"Key": "c", "Value": "d"}]
