"""Errors of sizing what runs on Flink (SIZ-055 to SIZ-059). The path of each is Flink's key, until the caller gives it a place."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class BadFlinkSetting(DocumentError):
    """A value that Flink itself can't read: no memory size, no fraction, no duration, no whole number."""

    code = "SIZ-055"
    title = "Flink would refuse this setting"


class FlinkMemoryMissing(DocumentError):
    """Flink starts no process whose memory is not given in one of its three ways."""

    code = "SIZ-056"
    title = "the memory of a Flink process is not given"


class FlinkMemoryContradicts(DocumentError):
    """Two memory settings can't both hold, so that Flink's own processes would not start."""

    code = "SIZ-057"
    title = "Flink's memory settings contradict each other"
