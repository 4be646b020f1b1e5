"""Errors of the Kubernetes API server on this machine (KUBE-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed, ToolMissing


class GoMissing(ToolMissing):
    """Go, which builds the API server, etcd and helm, is not installed on this machine."""

    code = "KUBE-001"
    title = "Go not found"


class GoUnfit(ToolMissing):
    """Go is too old for the modules, or its version cannot be determined."""

    code = "KUBE-002"
    title = "unsupported Go version"


class ModulesNotFetched(ToolMissing):
    """Go could not download the modules, or their checksums do not match go.sum."""

    code = "KUBE-003"
    title = "cannot download Go modules"


class NotBuilt(RunFailed):
    """The Go modules are present, but a program could not be built from them."""

    code = "KUBE-004"
    title = "build failed"


class BuildTooLong(RunFailed):
    """The build was stopped at its time limit; compiled packages stay in Go's build cache, so the next build resumes from there."""

    code = "KUBE-005"
    title = "build timed out"


class CacheNotWritable(ToolMissing):
    """The directory for built programs is not writable."""

    code = "KUBE-006"
    title = "cache directory not writable"


class ServerDied(RunFailed):
    """etcd or the API server exited before it was stopped."""

    code = "KUBE-010"
    title = "Kubernetes API server terminated unexpectedly"


class ServerNotReady(RunFailed):
    """The API server is running but does not become ready."""

    code = "KUBE-011"
    title = "timed out waiting for the Kubernetes API server"
