"""Errors of the conversion of Flink deployments (SPEC-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NotAFlinkDeployment(DocumentError):
    """The document's kind or apiVersion is not that of a FlinkDeployment, the only resource that can be converted to a spec."""

    code = "SPEC-020"
    title = "not a FlinkDeployment"


class FlinkSession(DocumentError):
    """The documents are not one session cluster with all of its jobs, which are converted together: they share its TaskManagers."""

    code = "SPEC-021"
    title = "not one Flink session cluster with its jobs"
