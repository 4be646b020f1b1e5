"""Processes that end with their parent, and environment variables for tools."""
