"""Errors of a review."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class NoRepository(DocumentError):
    """A review compares with a commit, so it runs in a Git repository."""

    code = "REV-001"
    title = "not a Git repository"


class UnknownCommit(DocumentError):
    """The name is no commit of the repository, or the commit was not fetched: many CI systems fetch the last one alone."""

    code = "REV-002"
    title = "unknown commit"
