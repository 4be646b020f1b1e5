"""How the topics of an environment are managed: by MSK's API, or by the brokers themselves, from this machine or within the cluster."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from penstock.infra.broker_settings import server_properties
from penstock.infra.environment import Environment
from penstock.infra.image_tag import image_tags
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.scripts.errors import WrongUsage
from penstock.scripts.topics.address import access_of_pods
from penstock.scripts.topics.admin import TopicAdmin
from penstock.scripts.topics.difference import WantedTopic
from penstock.scripts.topics.errors import NotByMsk, NotInCluster

Way = Literal["msk-api", "cluster", "here"]
TEXTS: dict[Way, str] = {"msk-api": "through MSK's API", "cluster": "in the cluster", "here": "from here"}
_REACH_S = 3.0
# A topic's settings that follow a setting of the brokers. Source: Apache Kafka, "Topic configs", Server Default Property.
_TOPIC_SETTINGS = {"log.retention.ms": "retention.ms", "message.max.bytes": "max.message.bytes"}


@dataclass(frozen=True)
class Reached:
    """Whoever manages the topics.

    Args:
        way: how.
        place: the brokers' address, or the cluster's name.
        admin: reads and changes the topics.
    """

    way: Way
    place: str
    admin: TopicAdmin

    @property
    def text(self) -> str:
        """For people: where, and how."""
        return f"{self.place}, {TEXTS[self.way]}"


def refuse_brokers_options(way: Way | None, options: Sequence[str]) -> None:
    """Reject options that say how this machine reaches the brokers together with another way.

    Args:
        way: asked for; None: none is.
        options: those that were given, such as ``--brokers``.

    Raises:
        WrongUsage: USE-001.
    """
    if way in ("msk-api", "cluster") and options:
        fix = f"leave out {', '.join(options)}, or use --through here"
        need = "one of the two: the options are for a connection from this machine"
        raise WrongUsage(given=f"--through {way} {' '.join(options)}", need=need, fix=fix)


def by_msk(environment: Environment, *, asked: bool) -> Reached | None:
    """The topics by MSK's API; None if the environment's brokers are not MSK's, or MSK does not manage their topics.

    Args:
        environment: of the topics.
        asked: whether this way was asked for, and no other one is taken.

    Raises:
        NotByMsk: TOP-010, asked for and not possible.
        KafkaClusterNotFound: TOP-005.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021 from a request to MSK.
    """
    if (why := _not_msks(environment)) is not None:
        _refuse_if_asked(environment, why, asked=asked)
        return None
    from penstock.scripts.provisioning.aws_access import AwsAccess, translated  # boto3 takes half a second
    from penstock.scripts.topics.msk_cluster import find
    from penstock.scripts.topics.msk_topics import MskTopics

    client = AwsAccess(environment).client("kafka")
    with translated(f"MSK in {environment.spec.region}"):
        cluster = find(environment, client)
    if (why := cluster.without_topics_api) is not None:
        _refuse_if_asked(environment, why, asked=asked)
        return None
    return Reached("msk-api", cluster.arn.split("/")[1], MskTopics(client, cluster, _defaults(environment)))


def by_brokers(access: KafkaAccess) -> Reached:
    """The topics by the brokers themselves, from this machine.

    Args:
        access: to the brokers.
    """
    from penstock.scripts.topics.brokers import TopicBrokers

    return Reached("here", access.address, TopicBrokers(access))


@contextmanager
def in_cluster(environment: Environment, wanted: Sequence[WantedTopic], jobs: Sequence[str], *, lose_records: bool) -> Iterator[Reached]:
    """The topics by the brokers themselves, from a pod of the environment's cluster.

    Args:
        environment: of the topics, with a cluster.
        wanted: the topics.
        jobs: names of the environment's jobs, whose image the pod runs.
        lose_records: whether changes that delete records are allowed.

    Raises:
        NotInCluster: TOP-014.
        PenstockError: DEP-007 without an API server that answers; as `penstock.scripts.topics.address.access_of_pods`.
    """
    from penstock.infra.system_pods import system_pods
    from penstock.scripts.provisioning.aws_access import AwsAccess, translated
    from penstock.scripts.topics.in_cluster import ClusterTopics, cluster_api  # the client of Kubernetes takes long to import
    from penstock.scripts.topics.in_pod import Request

    if environment.spec.eks is None or not jobs:
        need, fix = "a cluster and a job, whose image the pod runs", "use --through here from a machine that reaches the brokers"
        raise NotInCluster(path=f"environment {environment.name}", need=need, fix=fix)
    aws, access = AwsAccess(environment), access_of_pods(environment)
    with translated(f"ECR in {environment.spec.region}"):
        (repository,) = aws.client("ecr").describe_repositories(repositoryNames=[f"{environment.prefix}/jobs"])["repositories"]
    image = f"{repository['repositoryUri']}:{image_tags(environment, jobs)[jobs[0]]}"
    request = Request(
        address=access.address,
        security=access.security,
        region=access.region,
        secret=access.secret,
        ca=access.ca,
        wanted=tuple(wanted),
        lose_records=lose_records,
    )
    with cluster_api(aws) as api:
        yield Reached("cluster", access.address, ClusterTopics(api, image, request, system_pods(environment)))


def reaches(address: str, limit_s: float = _REACH_S) -> bool:
    """Whether this machine reaches any of the brokers.

    Args:
        address: ``host:port``, comma-separated.
        limit_s: how long each may take to accept a connection, in seconds.
    """
    for server in address.split(","):
        host, _, port = server.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=limit_s):
            return True
    return False


def _not_msks(environment: Environment) -> str | None:
    kafka = environment.spec.kafka
    if kafka is None:
        return "no brokers"
    if kafka.kind == "serverless":
        return "a serverless cluster"
    if kafka.kind == "external" and kafka.cluster_arn is None:
        return "external brokers without clusterArn"
    return None


def _refuse_if_asked(environment: Environment, why: str, *, asked: bool) -> None:
    if asked:
        need = "a standard or express cluster on MSK with Kafka 3.6 or later"
        fix = "leave out --through msk-api: the brokers then manage the topics themselves"
        raise NotByMsk(path=f"environment {environment.name}", given=why, need=need, fix=fix)


def _defaults(environment: Environment) -> dict[str, str]:
    """What topics have that don't set it, as far as the stacks set it for the brokers."""
    kafka = environment.spec.kafka
    if kafka is None or kafka.kind == "external":
        return {}
    brokers = server_properties(kafka)
    return {topic: brokers[name] for name, topic in _TOPIC_SETTINGS.items() if name in brokers}
