"""Calls to external systems from within a stream."""

from __future__ import annotations

from penstock.jobs.blocks.calls.attempts import CallRefused
from penstock.jobs.blocks.calls.calls import call

__all__ = ["CallRefused", "call"]
