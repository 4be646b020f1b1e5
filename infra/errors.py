"""Errors of environments and stacks (INF-...)."""

from __future__ import annotations

from sizing.errors import DocumentError, ToolMissing


class UnknownEnvironment(DocumentError):
    """A name that no shipped environment has."""

    code = "INF-001"
    title = "there is no such environment"


class NoEnvironment(DocumentError):
    """Stacks are synthesized for one environment, and there is no default: the wrong one is too dear."""

    code = "INF-002"
    title = "no environment is named"


class NodeNotFound(ToolMissing):
    """cdktf's constructs run in Node.js."""

    code = "INF-003"
    title = "Node.js is missing"


class BadNodePool(DocumentError):
    """A pool of the environment that Karpenter would refuse."""

    code = "INF-004"
    title = "Karpenter would refuse this NodePool"


class UnreadableCatalog(DocumentError):
    """The environment names a file of instance types or of prices that can't be read."""

    code = "INF-005"
    title = "the catalog can't be read"
