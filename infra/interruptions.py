"""The AWS events that notify Karpenter of interruptions of instances.

Source: the rules of the CloudFormation template of karpenter-provider-aws v1.14.1, with their patterns unchanged. They match the events
of
the whole account and region: only Karpenter knows which instances are nodes of its cluster, and it drops the others.
"""

from __future__ import annotations

import json
from types import MappingProxyType

_EC2, _HEALTH = "aws.ec2", "aws.health"

# Id of the rule -> source and detail type of its events.
EVENTS = MappingProxyType(
    {
        "scheduled-change": (_HEALTH, "AWS Health Event"),
        "spot-interruption": (_EC2, "EC2 Spot Instance Interruption Warning"),
        "rebalance": (_EC2, "EC2 Instance Rebalance Recommendation"),
        "state-change": (_EC2, "EC2 Instance State-change Notification"),
        "capacity-reservation": (_EC2, "EC2 Capacity Reservation Instance Interruption Warning"),
    }
)


def pattern(rule: str) -> str:
    """The event pattern of a rule, as JSON.

    Args:
        rule: one of `EVENTS`.
    """
    source, detail_type = EVENTS[rule]
    return json.dumps({"source": [source], "detail-type": [detail_type]})
