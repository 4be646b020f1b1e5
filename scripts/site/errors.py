"""Errors of building the documentation's site."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed


class WrongNavigation(DocumentError):
    """A page is in the navigation twice or not at all, or an entry names no page."""

    code = "SITE-001"
    title = "navigation does not match the pages"


class DeadLink(CheckFailed):
    """A link of a page leads to no file, page or heading."""

    code = "SITE-002"
    title = "dead link"


class ExternalAsset(CheckFailed):
    """A built page loads a script, a style, a font or an image from another host."""

    code = "SITE-003"
    title = "asset from another host"


class SiteNotBuilt(RunFailed):
    """The generator refused the pages; the end of its output is shown."""

    code = "SITE-004"
    title = "site not built"
