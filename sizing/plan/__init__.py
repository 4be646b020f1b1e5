"""From targets to the plan: all planning is here, and is done once."""

from penstock.sizing.plan.planning import plan

__all__ = ["plan"]
