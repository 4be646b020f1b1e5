"""Flink's sizing: its memory model, TaskManagers and subtasks, and a comparison with Spark.

For migrations from Flink: `penstock size --from-flink` shows a deployment next to the plan that replaces it.
"""
