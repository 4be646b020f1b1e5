"""The errors of the Kubernetes API server on this machine: KUBE-001 onwards."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed, ToolMissing


class GoMissing(ToolMissing):
    """The Go that builds the API server, etcd and helm is not on this machine."""

    code = "KUBE-001"
    title = "Go is missing"


class GoUnfit(ToolMissing):
    """Go is there, but too old for the modules, or it does not say its version."""

    code = "KUBE-002"
    title = "Go does not fit"


class ModulesNotFetched(ToolMissing):
    """Go could not fetch the modules, or what it fetched is not what go.sum says."""

    code = "KUBE-003"
    title = "Go modules could not be fetched"


class NotBuilt(RunFailed):
    """Go has the modules and could not make a program of them."""

    code = "KUBE-004"
    title = "a program could not be built"


class BuildTooLong(RunFailed):
    """The build was stopped at its time limit; what is compiled stays in Go's own cache, so that the next one goes on from there."""

    code = "KUBE-005"
    title = "a build did not end in time"


class CacheNotWritable(ToolMissing):
    """The folder that keeps what was built can't be written to."""

    code = "KUBE-006"
    title = "the cache folder is not writable"


class ServerDied(RunFailed):
    """etcd or the API server ended before it was told to."""

    code = "KUBE-010"
    title = "the Kubernetes API server ended by itself"


class ServerNotReady(RunFailed):
    """The API server runs, and does not say that it is ready."""

    code = "KUBE-011"
    title = "the Kubernetes API server did not start in time"
