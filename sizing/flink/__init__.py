"""Flink's own sizing: its memory model, its TaskManagers and subtasks, and both held against Spark's.

For those who move from Flink: `penstock size --from-flink` shows what a deployment has today beside what replaces it.
"""
