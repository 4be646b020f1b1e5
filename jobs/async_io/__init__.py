"""Calls of outside systems from within a stream."""

from __future__ import annotations

from jobs.async_io.attempts import CallRefused
from jobs.async_io.calls import call

__all__ = ["CallRefused", "call"]
