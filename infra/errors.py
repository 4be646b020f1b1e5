"""Errors of environments and stacks (INF-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, ToolMissing


class UnknownEnvironment(DocumentError):
    """No shipped environment has this name."""

    code = "INF-001"
    title = "unknown environment"


class NoEnvironment(DocumentError):
    """Stacks are synthesized for a single environment, and there is no default because deploying to the wrong one is too costly."""

    code = "INF-002"
    title = "no environment specified"


class NodeNotFound(ToolMissing):
    """cdktf's constructs run on Node.js."""

    code = "INF-003"
    title = "Node.js not found"


class BadNodePool(DocumentError):
    """Karpenter would reject a NodePool of the environment."""

    code = "INF-004"
    title = "invalid NodePool"


class UnreadableCatalog(DocumentError):
    """The environment refers to a catalog or price file that cannot be read."""

    code = "INF-005"
    title = "cannot read the catalog"


class JobNamedTwice(DocumentError):
    """Two specs of an environment have the same name, and would share a checkpoint, a namespace and an IAM role."""

    code = "INF-006"
    title = "duplicate job name"


class EksVersionUnsupported(DocumentError):
    """The EKS version is past its end of support: EKS charges six times as much for the cluster, or upgrades it automatically."""

    code = "INF-020"
    title = "EKS version out of support"


class EksVersionUnknown(DocumentError):
    """EKS does not offer this version."""

    code = "INF-021"
    title = "unknown EKS version"


class NoAdministrator(DocumentError):
    """No IAM principal has administrator access to the cluster, so nothing could be deployed to it."""

    code = "INF-022"
    title = "cluster without administrators"


class ZoneUnknown(DocumentError):
    """According to the catalog of the region, no instance type is offered in this zone."""

    code = "INF-023"
    title = "unknown availability zone"


class UnknownStack(DocumentError):
    """The environment has no stack of this name."""

    code = "INF-007"
    title = "unknown stack"


class LimitsChangePlan(CheckFailed):
    """Limits derived from the plans must not change the plans; with these limits, the placement differs."""

    code = "INF-030"
    title = "computed NodePool limits change the plan"


class DriversDisturbed(DocumentError):
    """Disrupting a driver's node restarts the query, and the environment does not explicitly allow it."""

    code = "INF-031"
    title = "Karpenter may disrupt the drivers' nodes"


class TooFewZones(DocumentError):
    """MSK Express brokers require three zones."""

    code = "INF-040"
    title = "too few zones for the brokers"


class BrokersNotOverZones(DocumentError):
    """MSK distributes brokers evenly over the zones, so their number must be a multiple of the number of zones."""

    code = "INF-041"
    title = "brokers not evenly distributed over the zones"


class FewerBrokers(CheckFailed):
    """MSK cannot remove standard brokers that hold partitions, so the number of brokers never decreases."""

    code = "INF-042"
    title = "cannot reduce the number of brokers"


class BrokersUnknown(DocumentError):
    """The environment has no Kafka cluster, or an external one without bootstrap servers."""

    code = "INF-043"
    title = "bootstrap servers not specified"


class ClusterOfAnother(DocumentError):
    """The MSK cluster is of another account or region than the environment: roles of the environment have no rights on its topics."""

    code = "INF-065"
    title = "MSK cluster of another account or region"


class BrokerCaUnusable(DocumentError):
    """The file with the brokers' CA certificates cannot be read, is not PEM, or has no certificate that is valid today."""

    code = "INF-066"
    title = "CA certificates of the brokers unusable"


class NameTooLong(DocumentError):
    """A resource name is derived from the environment's name and exceeds AWS's limit."""

    code = "INF-060"
    title = "environment name too long"


class DaemonSetNotSized(DocumentError):
    """A DaemonSet is deployed that is not among the environment's DaemonSets, so nodes would be sized without it."""

    code = "INF-061"
    title = "DaemonSet missing from the sizing"


class LogsTooSmall(DocumentError):
    """Fluent Bit's memory request cannot hold a buffer for each job."""

    code = "INF-062"
    title = "Fluent Bit memory too small"


class BadImageTag(DocumentError):
    """No registry accepts the tag."""

    code = "INF-050"
    title = "invalid image tag"


class OutputsOverlap(DocumentError):
    """Two jobs write below the same path of the output bucket, so one could overwrite the other's files."""

    code = "INF-051"
    title = "output paths overlap"


class InputsOverlap(DocumentError):
    """The role of a job may list what begins with the path of its input, which another job's input does."""

    code = "INF-054"
    title = "input paths begin alike"


class NamesBeginAlike(DocumentError):
    """The name of another environment of the account begins with this one's: rights to what begins with this name reach its resources."""

    code = "INF-055"
    title = "environment names begin alike"


class MirrorMissing(DocumentError):
    """Nodes without a NAT gateway can't pull images from public registries."""

    code = "INF-056"
    title = "registry out of reach"


class EndpointMissing(DocumentError):
    """Pods without a NAT gateway reach a service of AWS only through its endpoint in the VPC."""

    code = "INF-057"
    title = "service out of reach"


class SettingOfDeployment(DocumentError):
    """Another value for a Spark setting that the deployment sets would move the job out of its namespace, network or image."""

    code = "INF-052"
    title = "Spark setting managed by the deployment"


class ImageTagOfUnknownJob(DocumentError):
    """The environment, or PENSTOCK_IMAGE_TAG, has an image tag for a job that the environment does not name."""

    code = "INF-053"
    title = "image tag of an unknown job"


class UnevenDomain(DocumentError):
    """An OpenSearch domain in two zones needs the same number of nodes in both."""

    code = "INF-063"
    title = "OpenSearch nodes not evenly distributed over the zones"


class ConnectionNotGiven(DocumentError):
    """A job refers to a connection that its environment does not define."""

    code = "INF-070"
    title = "connection not found in the environment"


class ProviderLockInvalid(DocumentError):
    """The repository's lock file of Terraform's providers locks another version than the stacks require, or is not of Terraform's form."""

    code = "INF-072"
    title = "invalid provider lock file"


class ImageLockInvalid(DocumentError):
    """A lock file of images cannot be read: its digests are no digests, or it is not of the form that `penstock image lock` writes."""

    code = "INF-073"
    title = "invalid lock file of images"


class ConnectionOfAnotherKind(DocumentError):
    """A job uses a connection as another type than the environment defines."""

    code = "INF-071"
    title = "connection has the wrong type"


class UnknownJobOfSession(DocumentError):
    """A session names a job that the environment does not have."""

    code = "INF-080"
    title = "job of a session not found in the environment"


class JobInTwoSessions(DocumentError):
    """A job has one driver, so it is in one session at most."""

    code = "INF-081"
    title = "job in two sessions"


class SessionNameTaken(DocumentError):
    """Jobs and sessions have namespaces, drivers, roles and log groups of their names."""

    code = "INF-082"
    title = "name of a session already taken"


class BoundedJobInSession(DocumentError):
    """A session runs until it is stopped, and a job with ``trigger: availableNow`` ends."""

    code = "INF-083"
    title = "bounded job in a session"


class SessionWithOperator(DocumentError):
    """The Spark operator starts a driver for one application."""

    code = "INF-084"
    title = "sessions with the Spark operator"


class ImagesOfSessionDiffer(DocumentError):
    """The jobs of a session run in one driver and on the same executors, so they have one image."""

    code = "INF-085"
    title = "jobs of a session have different images"


class JarsOfSessionDiffer(DocumentError):
    """The jobs of a session share a class path, which has each library once."""

    code = "INF-086"
    title = "jobs of a session have different versions of a jar"


class AppTooLarge(DocumentError):
    """The app of a job in a session is larger than what is uploaded for it."""

    code = "INF-087"
    title = "app of a job in a session too large"


class MetricsOfSessionCollide(DocumentError):
    """Spark names a query's metrics by the job and the sink, with underscores for hyphens: those of two jobs are taken for one's."""

    code = "INF-088"
    title = "metrics of two jobs of a session have the same name"
