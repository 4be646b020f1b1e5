"""Inputs that ``penstock up`` feeds to the shipped jobs, and their expectations, computed without Spark."""
