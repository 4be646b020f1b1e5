"""Errors of the security gate (SEC-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed


class UnwaivedFinding(CheckFailed):
    """A rule fails for a resource or manifest, and no waiver accepts it."""

    code = "SEC-001"
    title = "security rule failed"


class UnusedWaiver(CheckFailed):
    """No finding matches the waiver; it would hide the next one that does."""

    code = "SEC-002"
    title = "unused waiver"


class ExpiredWaiver(CheckFailed):
    """A waiver has passed its expiry date and must be reviewed."""

    code = "SEC-003"
    title = "waiver expired"


class NotScanned(CheckFailed):
    """The scanned files are not all of those that were synthesized, so findings may be missing."""

    code = "SEC-004"
    title = "incomplete scan"


class WaiverTwice(DocumentError):
    """Two waivers exist for the same rule and path."""

    code = "SEC-005"
    title = "duplicate waiver"


class BadWaivers(DocumentError):
    """The waivers file cannot be read or parsed."""

    code = "SEC-006"
    title = "invalid waivers file"


class ScannerFailed(RunFailed):
    """The scanner exited without a report."""

    code = "SEC-007"
    title = "scanner failed"


class ChangedSinceWaived(CheckFailed):
    """A waiver exists, but the object has changed since it was given: it needs a new decision."""

    code = "SEC-008"
    title = "waived object changed"
