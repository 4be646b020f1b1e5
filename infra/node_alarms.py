"""Alarms of an environment's nodes: pods that no node takes, and NodePools that may start none.

The number of pending pods is EKS's own metric, which depends on nothing in the cluster. What a NodePool's limits refuse is in Karpenter's
log, which Fluent Bit sends to the environment's log group.

Source: Amazon EKS User Guide, "Monitor cluster data with Amazon CloudWatch"; Karpenter 1.14.1, the errors of its scheduler; CloudWatch Logs
User Guide, "Supported regular expressions syntax".
"""

from __future__ import annotations

from penstock.infra.job_alarms import Alarm, Metric
from penstock.infra.parts.nodes import Nodes
from penstock.infra.parts.observability import Alarms
from penstock.sizing.placement.scenario import BATCH_MAX_S

EKS_NAMESPACE, EKS_CLUSTER_DIMENSION = "AWS/EKS", "ClusterName"
# What to do when an alarm is raised, in this repository: a section for each.
RUNBOOK = "docs/stacks/runbook.md"
# Ours: a node that EC2 refuses or that doesn't register is asked for again, and may be refused once more.
NODE_STARTS_OF_PENDING = 3
_MINUTE_S, _FIVE_MINUTES_S = 60, 300

PENDING_PODS = Metric("scheduler_pending_pods", "", "")
# Karpenter tries each pending pod again every few seconds, and says each time why not.
BEYOND_LIMITS = Metric("PodsBeyondLimits", '{ $.message = "could not schedule pod" && $.error = %limits.*nodepool% }', "1")


def log_group(environment: str) -> str:
    """The log group of Karpenter's logs.

    Args:
        environment: its name.
    """
    return f"/penstock/{environment}/karpenter"


def pending_minutes(alarms: Alarms, nodes: Nodes) -> int:
    """How long a pod may wait for its node, in whole minutes: by default three starts of a node as the plans take them.

    Args:
        alarms: of the environment.
        nodes: whose `boot` follows Karpenter's batch of pods.
    """
    if alarms.pending is not None:
        return alarms.pending // (_MINUTE_S * 1000)
    return -(-int(NODE_STARTS_OF_PENDING * (BATCH_MAX_S * 1000 + nodes.boot)) // (_MINUTE_S * 1000))


def pending_alarm(environment: str, minutes: int) -> Alarm:
    """The alarm for pods without a node.

    Args:
        environment: its name.
        minutes: of `pending_minutes`.
    """
    description = (
        f"pods have waited for a node for {minutes} minutes, longer than it takes to start one: `penstock doctor`, with environment"
        f" {environment}, shows which pods and why; {RUNBOOK}#penstockpodspending"
    )
    return Alarm("pods-pending", description, PENDING_PODS, "Sum", _MINUTE_S, minutes, "GreaterThanThreshold", 0, "notBreaching")


def limits_alarm(environment: str) -> Alarm:
    """The alarm for pods that Karpenter starts no node for, because of a NodePool's limits.

    Args:
        environment: its name.
    """
    description = (
        "Karpenter starts no node for a pod, as it would exceed a NodePool's limits: `penstock doctor`, with environment"
        f" {environment}, shows the pool; raise its limits or limitHeadroom and deploy, or remove what uses them up;"
        f" {RUNBOOK}#penstockpoollimit"
    )
    return Alarm("pool-limits", description, BEYOND_LIMITS, "Sum", _FIVE_MINUTES_S, 1, "GreaterThanThreshold", 0, "notBreaching")
