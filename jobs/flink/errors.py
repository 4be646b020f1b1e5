"""Errors of the conversion of Flink deployments (SPEC-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NotAFlinkDeployment(DocumentError):
    """The document's kind or apiVersion is not that of a FlinkDeployment, the only resource that can be converted to a spec."""

    code = "SPEC-020"
    title = "not a FlinkDeployment"


class FlinkSession(DocumentError):
    """The document describes a session cluster or a job of one; the size of the cluster says nothing about a single job."""

    code = "SPEC-021"
    title = "Flink session clusters cannot be converted"
