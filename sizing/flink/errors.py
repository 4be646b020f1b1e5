"""Errors of sizing Flink deployments (SIZ-055 to SIZ-059). The path of each is Flink's key, until the caller adds a place."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class BadFlinkSetting(DocumentError):
    """Flink cannot parse the value as a memory size, fraction, duration or integer."""

    code = "SIZ-055"
    title = "invalid Flink setting"


class FlinkMemoryMissing(DocumentError):
    """Flink does not start a process without one of its three memory options."""

    code = "SIZ-056"
    title = "Flink process memory not configured"


class FlinkMemoryContradicts(DocumentError):
    """Two memory settings conflict, so Flink's processes would not start."""

    code = "SIZ-057"
    title = "conflicting Flink memory settings"
