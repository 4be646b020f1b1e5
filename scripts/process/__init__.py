"""Processes that end with their parent, and environments for tools."""
