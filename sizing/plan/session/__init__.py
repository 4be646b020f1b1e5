"""The plan of a session: several jobs in one driver, on executors that they share."""

from penstock.sizing.plan.session.planned import SessionPlan
from penstock.sizing.plan.session.planning import plan_session

__all__ = ["SessionPlan", "plan_session"]
