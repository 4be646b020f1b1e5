"""Errors of Kubernetes on this machine (KUBE-...)."""

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


class NodesUnsupported(ToolMissing):
    """This machine cannot run pods: it is not Linux, the user is not root, or a program or a feature of the kernel is missing."""

    code = "KUBE-020"
    title = "this machine cannot run pods"


class ClusterInUse(RunFailed):
    """Another process of this machine runs a cluster with nodes; both would use the same addresses and cgroups."""

    code = "KUBE-021"
    title = "another cluster is running"


class AddressesTaken(RunFailed):
    """A route of this machine covers addresses of the cluster."""

    code = "KUBE-022"
    title = "the cluster's addresses are in use"


class CgroupNotMade(RunFailed):
    """A cgroup of a node could not be created, which the limits of its pods need."""

    code = "KUBE-023"
    title = "cannot create a cgroup"


class NodeCommandFailed(RunFailed):
    """A command that sets a node up failed: its network, its disk, or an image that it should have."""

    code = "KUBE-024"
    title = "cannot set up a node"


class ComponentDied(RunFailed):
    """A program of the cluster exited before it was stopped."""

    code = "KUBE-025"
    title = "a program of the cluster terminated unexpectedly"


class NodeNotReady(RunFailed):
    """A program of the cluster is running but does not become ready."""

    code = "KUBE-026"
    title = "timed out waiting for the cluster"


class KubeconfigUnusable(ToolMissing):
    """The cluster of a kubeconfig cannot be reached, or its user may not do what the tests need."""

    code = "KUBE-027"
    title = "cannot use the cluster of the kubeconfig"
