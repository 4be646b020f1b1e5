"""Sinks: destinations of a job's rows, each with its delivery guarantee."""
