"""The rules of the interruption queue, matched against events as EventBridge sends them, by an independent matcher."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from penstock.infra.interruptions import EVENTS, pattern

INSTANCE = "i-1234567890abcdef0"


def event(source: str, detail_type: str, **detail: Any) -> dict[str, Any]:
    """An event in EventBridge's format. Source: EC2 User Guide and AWS Health User Guide, the examples of their events."""
    return {
        "version": "0",
        "id": "12345678-1234-1234-1234-123456789012",
        "detail-type": detail_type,
        "source": source,
        "account": "123456789012",
        "time": "2026-11-21T12:00:00Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:ec2:us-east-1:123456789012:instance/{INSTANCE}"],
        "detail": detail,
    }


# The messages that Karpenter 1.14.1 reads (pkg/controllers/interruption/messages), and the rule that delivers each.
HEEDED = [
    (
        "spot-interruption",
        event("aws.ec2", "EC2 Spot Instance Interruption Warning", **{"instance-id": INSTANCE, "instance-action": "terminate"}),
    ),
    ("rebalance", event("aws.ec2", "EC2 Instance Rebalance Recommendation", **{"instance-id": INSTANCE})),
    *(
        ("state-change", event("aws.ec2", "EC2 Instance State-change Notification", **{"instance-id": INSTANCE, "state": state}))
        for state in ("stopping", "stopped", "shutting-down", "terminated")
    ),
    (
        "scheduled-change",
        event(
            "aws.health",
            "AWS Health Event",
            service="EC2",
            eventTypeCode="AWS_EC2_INSTANCE_TERMINATION_SCHEDULED",
            eventTypeCategory="scheduledChange",
            affectedEntities=[{"entityValue": INSTANCE}],
        ),
    ),
    (
        "capacity-reservation",
        event(
            "aws.ec2",
            "EC2 Capacity Reservation Instance Interruption Warning",
            **{"instance-id": INSTANCE, "instance-action": "terminate"},
        ),
    ),
]
OTHERS = [
    event("aws.ec2", "EC2 Spot Instance Request Fulfillment", **{"instance-id": INSTANCE}),
    event("aws.ec2", "EBS Volume Notification", event="createVolume", result="available"),
    event("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", EC2InstanceId=INSTANCE),
    event("com.example", "EC2 Spot Instance Interruption Warning", **{"instance-id": INSTANCE}),
    event("aws.ec2", "AWS Health Event"),
]


def matching(sent: Any) -> list[str]:
    return [rule for rule in EVENTS if EventPattern.load(pattern(rule)).matches_event(sent)]


@pytest.mark.parametrize(("rule", "sent"), HEEDED, ids=lambda value: value if isinstance(value, str) else value["detail"].get("state", ""))
def test_each_message_that_karpenter_reads_is_brought_by_one_rule(rule: str, sent: dict[str, Any]) -> None:
    assert matching(sent) == [rule]


@pytest.mark.parametrize("sent", OTHERS, ids=lambda sent: sent["detail-type"])
def test_what_karpenter_does_not_read_is_brought_by_none(sent: dict[str, Any]) -> None:
    assert matching(sent) == []


def test_no_rule_is_without_a_message() -> None:
    assert {rule for rule, _ in HEEDED} == set(EVENTS)
