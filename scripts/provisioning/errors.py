"""Errors of deploy and destroy (DEP-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed, ToolMissing


class CredentialsRefused(ToolMissing):
    """AWS rejects the credentials of this machine."""

    code = "DEP-001"
    title = "credentials invalid or expired"


class OtherAccount(ToolMissing):
    """The credentials of this machine belong to another AWS account than the environment."""

    code = "DEP-002"
    title = "credentials are of another account"


class StateBucketMissing(ToolMissing):
    """The S3 bucket for the environment's Terraform state does not exist yet."""

    code = "DEP-003"
    title = "state bucket not found"


class BucketOfAnother(DocumentError):
    """Another account owns a bucket of this name; bucket names are globally unique."""

    code = "DEP-004"
    title = "bucket owned by another account"


class StatefulLoss(CheckFailed):
    """A plan would delete or replace a resource that holds data."""

    code = "DEP-005"
    title = "plan deletes resources that hold data"


class StateLocked(RunFailed):
    """Another process is working on the same stack; the state lock names its owner."""

    code = "DEP-006"
    title = "state locked"


class ApiServerNotReached(RunFailed):
    """The Kubernetes API server, through which the charts are applied, cannot be reached from this machine."""

    code = "DEP-007"
    title = "Kubernetes API server unreachable"


class Declined(CheckFailed):
    """The confirmation prompt was not answered with yes; nothing was changed."""

    code = "DEP-008"
    title = "cancelled"


class UnknownZone(DocumentError):
    """A zone of the environment does not exist in its region, or is not available to this account."""

    code = "DEP-009"
    title = "unknown availability zone"


class BoundaryMissing(DocumentError):
    """The managed policy that is to limit the roles of the stacks does not exist: AWS would refuse the first of them midway."""

    code = "DEP-023"
    title = "permissions boundary not found"


class RightMissing(ToolMissing):
    """The caller's policies do not let it create what the stacks have, which would end an apply midway."""

    code = "DEP-063"
    title = "right of the deploying role missing"


class NetworkDiffers(DocumentError):
    """The existing VPC or one of its subnets is not what the environment says, or is not shared with this account."""

    code = "DEP-051"
    title = "existing VPC differs from the environment"


class ClusterNotFound(DocumentError):
    """The account has no EKS cluster of the name that the environment gives as existing."""

    code = "DEP-052"
    title = "existing cluster not found"


class ClusterUnfit(DocumentError):
    """The existing cluster lacks what Penstock needs of it, which only its owners may change."""

    code = "DEP-054"
    title = "existing cluster unfit"


class KarpenterUnfit(DocumentError):
    """The existing cluster has no Karpenter that the environment could use, or has one beside which none may be installed."""

    code = "DEP-055"
    title = "Karpenter of the existing cluster unfit"


class ClusterDiffers(DocumentError):
    """The existing cluster is of another version, in another VPC, or its nodes have other security groups than the environment says."""

    code = "INF-058"
    title = "existing cluster differs from the environment"


class AlreadyAdmitted(DocumentError):
    """An administrator of the environment has an access entry in the existing cluster already, which the stacks can't create again."""

    code = "INF-059"
    title = "administrator has access already"


class NamespaceTaken(DocumentError):
    """The existing cluster has a namespace of others under a name that the stacks need."""

    code = "INF-064"
    title = "namespace taken"


class KubernetesRefused(RunFailed):
    """The Kubernetes API server returned an error."""

    code = "DEP-010"
    title = "Kubernetes API server rejected a request"


class StillThere(RunFailed):
    """Pods or nodes were not deleted in time; the network must not be destroyed before them."""

    code = "DEP-011"
    title = "timed out waiting for deletion"


class NothingOfThatName(DocumentError):
    """A resource named for deletion does not exist in the stacks."""

    code = "DEP-012"
    title = "resource to delete not found"


class NameTaken(RunFailed):
    """A resource to be created already exists and does not belong to the environment."""

    code = "DEP-013"
    title = "name already taken"


class StatePlaceUnfit(DocumentError):
    """The environment keeps its state in local files, so there is no bucket to create."""

    code = "DEP-014"
    title = "environment has no state bucket"


class StateMoved(DocumentError):
    """The environment specifies another location for a stack's state than the one in use."""

    code = "DEP-015"
    title = "state location changed"


class JobNotDeployed(RunFailed):
    """The cluster has no driver of this job that could be stopped or resumed: it is not deployed, or is a bounded run."""

    code = "DEP-017"
    title = "job not deployed"


class SessionIsStopped(RunFailed):
    """A job of a session is to run, and the session does not."""

    code = "DEP-064"
    title = "session stopped"


class DriverNotReady(RunFailed):
    """A driver that was started does not read its sources in time."""

    code = "DEP-018"
    title = "driver not ready"


class DriverOnNoNode(RunFailed):
    """No driver is on a node that it could leave: its job is stopped, or its pod waits for a node."""

    code = "DEP-043"
    title = "no driver to move"


class NoOtherNode(RunFailed):
    """A driver that was to move is not placed on another node in time. The node that it has left takes it again."""

    code = "DEP-044"
    title = "no other node for the driver"


class LogNotRead(RunFailed):
    """A pod has no log that could be read: it has not started, has no earlier container, or its node does not answer."""

    code = "DEP-022"
    title = "log not available"


class StateNotRead(RunFailed):
    """Spark cannot read the state of an operator: a file is damaged, missing or expired, or S3 is not reached."""

    code = "DEP-045"
    title = "state not readable"


class StateNotWritten(RunFailed):
    """The last apply could not save its state to the backend and left it in the stack's folder."""

    code = "DEP-016"
    title = "unsaved state"


class NothingToRewind(DocumentError):
    """The job has not run yet, or has no rewind that could be undone."""

    code = "DEP-019"
    title = "nothing to rewind"


class JobChanged(RunFailed):
    """Somebody else has rewound or changed the job meanwhile."""

    code = "DEP-020"
    title = "job has changed meanwhile"


class RewindRefused(RunFailed):
    """The driver has not rewound the job; the request is withdrawn, and the job goes on from its checkpoint."""

    code = "DEP-021"
    title = "driver did not rewind the job"


class NoEvidence(CheckFailed):
    """A job was deployed with a change, and its new generation has committed no micro-batch: its driver has failed, or the time is over."""

    code = "DEP-036"
    title = "changed job has committed nothing"


class SavepointInUse(RunFailed):
    """A start from the savepoint is requested, and no driver has obeyed it yet."""

    code = "DEP-033"
    title = "savepoint in use"


class JobHasNotRun(DocumentError):
    """A start from a savepoint is requested of a job that no driver has run: its first generation starts from what its spec names."""

    code = "DEP-053"
    title = "the job has not run yet"


class ProviderNotLocked(RunFailed):
    """The package of a Terraform provider that this machine would use is not one of those that Penstock or the repository has locked."""

    code = "DEP-056"
    title = "provider package differs from the locked ones"


class NotInRegistry(RunFailed):
    """A chart or an image of others is not in the registry or mirror that the environment pulls it from."""

    code = "DEP-057"
    title = "chart or image not in the registry"


class RegistryRefuses(RunFailed):
    """A registry of images and charts wants a login, or refuses the one that this machine has."""

    code = "DEP-058"
    title = "registry refuses the login"


class RegistryNotReached(RunFailed):
    """A registry of images and charts does not answer this machine, or not as a registry does."""

    code = "DEP-059"
    title = "registry not reached"


class ChartDiffers(RunFailed):
    """A registry has another chart under the version's tag than the one that was locked."""

    code = "DEP-060"
    title = "chart differs from the locked one"


class NotPreviewed(DocumentError):
    """An upgrade of the job cannot be previewed: it reads something that has no offsets, ends by itself, or its old spec is not known."""

    code = "DEP-046"
    title = "upgrade cannot be previewed"


class NoStub(DocumentError):
    """The job calls something outside, which a preview does not, and the spec has no local server that could answer instead."""

    code = "DEP-047"
    title = "outside call without a stub"
