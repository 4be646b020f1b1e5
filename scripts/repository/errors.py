"""Errors of a new repository."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError


class FolderNotEmpty(DocumentError):
    """A repository is made in a folder that does not exist, or has nothing in it but `.git`. Nothing is overwritten."""

    code = "INIT-001"
    title = "folder is not empty"


class WrongAnswer(DocumentError):
    """A name, an account, a region, a VPC or a cluster that a repository can't be made with."""

    code = "INIT-002"
    title = "invalid answer"


class FolderNotWritten(DocumentError):
    """The files can't be written. Nothing is left of them."""

    code = "INIT-003"
    title = "cannot write the repository"
