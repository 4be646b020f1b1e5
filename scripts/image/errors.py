"""Errors of the build of the jobs' image (IMG-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed, ToolMissing


class BuildToolMissing(ToolMissing):
    """buildah, or unshare of util-linux, is not installed on this machine."""

    code = "IMG-001"
    title = "buildah not found"


class BuildNotPermitted(ToolMissing):
    """buildah with chroot isolation, and debootstrap, need root."""

    code = "IMG-002"
    title = "building images needs root"


class BasesNotAssembled(ToolMissing):
    """A package or tool that the assembled base images consist of is missing on this machine, or has another version."""

    code = "IMG-003"
    title = "cannot assemble the base images"


class ImageNotBuilt(RunFailed):
    """A tool of the image's build has failed; its full log is kept."""

    code = "IMG-010"
    title = "the image does not build"


class NotAnApp(DocumentError):
    """A folder without a Python module, package or SQL file, or a file that is no wheel for every platform."""

    code = "IMG-004"
    title = "no app for the image"


class AppsOverlap(DocumentError):
    """Two apps have a module, package or SQL file of the same name, or one has Penstock's: the image has one folder for all of them."""

    code = "IMG-005"
    title = "apps with the same name"


class BadImageName(DocumentError):
    """Neither a registry nor a container runtime accepts the name and tag."""

    code = "IMG-006"
    title = "invalid image name"
