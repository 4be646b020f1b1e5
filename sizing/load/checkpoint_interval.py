"""The optimal checkpoint interval for a rate of node losses.

A micro-batch query commits every batch, far more often than this. The interval shows how little rarer checkpoints would save, and is the
recommended interval for jobs with savepoints.

Source: Young (1974), "A first order approximation to the optimum checkpoint interval": sqrt(2 * cost * MTBF); Daly (2006): that less the
cost.
"""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.month import HOURS_PER_MONTH


class CheckpointInterval(BaseModel):
    """The optimal time between two checkpoints.

    Args:
        job_mtbf_h: mean time between losses of any node of the job.
        young_s: by Young's formula.
        daly_s: by Daly's formula: less the cost, never below 0.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    job_mtbf_h: float
    young_s: float
    daly_s: float


def job_mtbf_h(loss_per_month: float, nodes: int) -> float:
    """Mean hours between node losses of a job, with independent losses.

    Args:
        loss_per_month: probability that a node is lost within 730 hours, above 0 and below 1.
        nodes: number of nodes, 1 or more.
    """
    hazard_per_h = -math.log1p(-loss_per_month) / HOURS_PER_MONTH
    return 1 / (hazard_per_h * nodes)


def checkpoint_interval(loss_per_month: float, nodes: int, checkpoint_cost_s: float) -> CheckpointInterval:
    """The optimal time between two checkpoints.

    Args:
        loss_per_month: see `job_mtbf_h`.
        nodes: see `job_mtbf_h`.
        checkpoint_cost_s: time for which a checkpoint blocks processing.
    """
    mtbf_h = job_mtbf_h(loss_per_month, nodes)
    young_s = math.sqrt(2 * checkpoint_cost_s * mtbf_h * 3600)
    return CheckpointInterval(job_mtbf_h=mtbf_h, young_s=young_s, daly_s=max(0.0, young_s - checkpoint_cost_s))
