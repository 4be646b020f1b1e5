"""Errors of environments and stacks (INF-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, ToolMissing


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


class JobNamedTwice(DocumentError):
    """Two specs of an environment have the same name, and with it the same checkpoint, namespace and role."""

    code = "INF-006"
    title = "two jobs of the environment have the same name"


class EksVersionUnsupported(DocumentError):
    """An EKS version past its support: EKS would bill six times as much for the cluster, or upgrade it by itself."""

    code = "INF-020"
    title = "the EKS version is out of support"


class EksVersionUnknown(DocumentError):
    """An EKS version that EKS does not offer."""

    code = "INF-021"
    title = "EKS does not have this version"


class NoAdministrator(DocumentError):
    """A cluster that nobody may administrate: the one who deploys could not add anything to it."""

    code = "INF-022"
    title = "nobody may administrate the cluster"


class ZoneUnknown(DocumentError):
    """A zone in which, by the catalog of the region, no instance type is sold."""

    code = "INF-023"
    title = "the region has no such zone"


class UnknownStack(DocumentError):
    """A stack is named that the environment does not have."""

    code = "INF-007"
    title = "the environment has no such stack"


class LimitsChangePlan(CheckFailed):
    """Limits that come from the plans must leave the plans as they are; these, placed again, do not."""

    code = "INF-030"
    title = "the computed limits of the pools change the plan"


class DriversDisturbed(DocumentError):
    """A driver's node that Karpenter may take away restarts the query, and nobody has asked for that."""

    code = "INF-031"
    title = "Karpenter may take the nodes of drivers away"


class TooFewZones(DocumentError):
    """MSK's Express brokers lie in three zones."""

    code = "INF-040"
    title = "too few zones for the brokers"


class BrokersNotOverZones(DocumentError):
    """MSK spreads brokers evenly over the zones, so their number is a multiple of these."""

    code = "INF-041"
    title = "the brokers do not spread evenly over the zones"


class FewerBrokers(CheckFailed):
    """MSK has no way to take away brokers of a standard cluster that hold partitions, so a cluster never gets fewer."""

    code = "INF-042"
    title = "a Kafka cluster does not get fewer brokers"


class BrokersUnknown(DocumentError):
    """The environment has no Kafka, or one that is none of the stacks' and does not say where it is."""

    code = "INF-043"
    title = "the environment does not say where its Kafka is"


class NameTooLong(DocumentError):
    """A resource's name is made of the environment's, and AWS takes fewer characters there."""

    code = "INF-060"
    title = "the environment's name is too long for what is made of it"


class DaemonSetNotSized(DocumentError):
    """What runs on every node must be among the environment's DaemonSets, or nodes would be sized without it."""

    code = "INF-061"
    title = "a DaemonSet that is deployed is not part of the sizing"


class LogsTooSmall(DocumentError):
    """Fluent Bit keeps a buffer for each job within the memory that it requests."""

    code = "INF-062"
    title = "Fluent Bit's memory is too small for its jobs"


class BadImageTag(DocumentError):
    """A tag that no registry takes."""

    code = "INF-050"
    title = "an image can't have this tag"


class OutputsOverlap(DocumentError):
    """Two jobs write below the same folder of the output bucket, so that either could write over the other."""

    code = "INF-051"
    title = "two jobs write to the same folder"


class SettingOfDeployment(DocumentError):
    """A Spark setting that the deployment gives: another value would move the job out of its namespace, its network or its image."""

    code = "INF-052"
    title = "the deployment gives this Spark setting"


class UnevenDomain(DocumentError):
    """An OpenSearch domain in two zones has as many nodes in one as in the other."""

    code = "INF-063"
    title = "the OpenSearch domain can't be spread over its zones"


class ConnectionNotGiven(DocumentError):
    """A job names a connection that its environment does not have."""

    code = "INF-070"
    title = "the environment has no such connection"


class ConnectionOfAnotherKind(DocumentError):
    """A job uses a connection as something else than it is in its environment."""

    code = "INF-071"
    title = "a connection is of another kind"
