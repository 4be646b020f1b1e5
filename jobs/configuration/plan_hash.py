"""A hash of a job's plan, by which its driver sees that the plan has changed."""

from __future__ import annotations

import hashlib
import json

from penstock.sizing.planned import Plan


def plan_hash(plan: Plan) -> str:
    """Of the pods and the Spark configuration: 16 hexadecimal digits. Nodes and cost are not the job's, and change nothing that it runs."""
    pods = plan.pods.model_dump(mode="json", exclude={"executor_spread"} if plan.pods.executor_spread is None else None)
    text = json.dumps([pods, plan.spark_conf, plan.max_offsets_per_trigger], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
