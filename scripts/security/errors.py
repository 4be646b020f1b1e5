"""Errors of the security gate (SEC-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed


class UnwaivedFinding(CheckFailed):
    """A rule fails on a resource or a manifest, and nothing says why that is accepted."""

    code = "SEC-001"
    title = "a security rule fails"


class UnusedWaiver(CheckFailed):
    """What a waiver accepts is not there any more: it would hide the next one."""

    code = "SEC-002"
    title = "a waiver has nothing to waive"


class ExpiredWaiver(CheckFailed):
    """A waiver is for a time; then somebody has to look again."""

    code = "SEC-003"
    title = "a waiver has expired"


class NotScanned(CheckFailed):
    """What was scanned is not what was synthesized: a gate that sees half of it passes the other half."""

    code = "SEC-004"
    title = "the scan did not see everything"


class WaiverTwice(DocumentError):
    """Two waivers for the same rule on the same path."""

    code = "SEC-005"
    title = "this waiver stands twice"


class BadWaivers(DocumentError):
    """The file of waivers is not what it should be."""

    code = "SEC-006"
    title = "the waivers can't be read"


class ScannerFailed(RunFailed):
    """The scanner ended without a report."""

    code = "SEC-007"
    title = "the scanner failed"
