"""From targets to the plan: all planning, done once."""

from penstock.sizing.plan.planning import plan

__all__ = ["plan"]
