"""Errors of deploying, destroying and what both need (DEP-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed, ToolMissing


class CredentialsRefused(ToolMissing):
    """AWS knows the credentials of this machine no more, or never did: they are wrong or have expired."""

    code = "DEP-001"
    title = "AWS refuses these credentials"


class OtherAccount(ToolMissing):
    """The credentials of this machine are of another account than the environment's."""

    code = "DEP-002"
    title = "the credentials are of another account"


class StateBucketMissing(ToolMissing):
    """The environment keeps Terraform's state in a bucket that is not there yet."""

    code = "DEP-003"
    title = "the bucket of the state is not there"


class BucketOfAnother(DocumentError):
    """A bucket of this name is somebody else's; names of buckets are AWS-wide."""

    code = "DEP-004"
    title = "the bucket belongs to another account"


class StatefulLoss(CheckFailed):
    """A plan would delete or replace what holds data."""

    code = "DEP-005"
    title = "the plan deletes what holds data"


class StateLocked(RunFailed):
    """Somebody else works on the same stack; Terraform's lock says who."""

    code = "DEP-006"
    title = "another deploy is under way"


class ApiServerNotReached(RunFailed):
    """The Kubernetes API server does not answer this machine; the charts are applied through it."""

    code = "DEP-007"
    title = "the Kubernetes API server is not reached"


class Declined(CheckFailed):
    """The question whether to go on was not answered with yes."""

    code = "DEP-008"
    title = "nothing was done"


class UnknownZone(DocumentError):
    """The region does not have a zone of the environment, for this account."""

    code = "DEP-009"
    title = "the zone does not exist"


class KubernetesRefused(RunFailed):
    """The Kubernetes API server answered with a refusal."""

    code = "DEP-010"
    title = "Kubernetes refused"


class StillThere(RunFailed):
    """Pods or nodes were told to go and have not gone in time; the network must not go before them."""

    code = "DEP-011"
    title = "it did not end in time"


class NothingOfThatName(DocumentError):
    """Something is named to be deleted that the stacks have not."""

    code = "DEP-012"
    title = "there is nothing of that name to delete"


class NameTaken(RunFailed):
    """A resource that the plan creates is there already, and is not the environment's."""

    code = "DEP-013"
    title = "the name is taken"


class StatePlaceUnfit(DocumentError):
    """The environment keeps its state in local files, so that there is no bucket to make."""

    code = "DEP-014"
    title = "the environment has no bucket for its state"


class StateMoved(DocumentError):
    """The environment names another place for a stack's state than the one that it was in."""

    code = "DEP-015"
    title = "the place of the state has changed"


class StateNotWritten(RunFailed):
    """The last apply could not write its state to its place, and left it beside the stack."""

    code = "DEP-016"
    title = "a state waits to be written"
