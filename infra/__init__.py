"""Infra: what a job stands on, as cdktf stacks. It knows the job spec and the plan, never Spark."""
