"""Results as changes: rows that appear, and rows that are taken back."""

from penstock.jobs.blocks.changes.changelog import changelog

__all__ = ["changelog"]
