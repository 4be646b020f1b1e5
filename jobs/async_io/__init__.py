"""Calls of outside systems from within a stream."""

from __future__ import annotations

from penstock.jobs.async_io.attempts import CallRefused
from penstock.jobs.async_io.calls import call

__all__ = ["CallRefused", "call"]
