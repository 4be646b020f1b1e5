"""``penstock topics --through cluster``: the Job's pod runs from the jobs' image, under its policies, and makes topics on a real broker."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient
from kubernetes.client import BatchV1Api

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.manifests.topics_job import NAMESPACE
from penstock.infra.system_pods import system_pods
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.scripts.cli.command import main
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.topics.brokers import TopicBrokers
from tests.infra.environments import written
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.team_job import Surroundings

TOPIC = "topics-job-clicks"
# More copies than the one broker can hold.
COPIES = 3


@pytest.fixture
def topic(around: Surroundings) -> Iterator[str]:
    """Name of the job's topic, which is not there before or after."""
    admin = AdminClient({"bootstrap.servers": around.brokers})
    _delete(admin)
    yield TOPIC
    _delete(admin)


def _delete(admin: AdminClient) -> None:
    if TOPIC in admin.list_topics(timeout=30).topics:
        admin.delete_topics([TOPIC])[TOPIC].result(30)


def environment_of(folder: Path, around: Surroundings, aws: str) -> Path:
    """An environment with one job and the tests' broker.

    Args:
        folder: for its file and the job's spec.
        around: the broker.
        aws: URL of the emulated AWS, as this machine sees it.
    """
    (folder / "app.py").write_text("", encoding="utf-8")
    spec = {
        "app": "app",
        "parallelism": 1,
        "executor": {"slots": 1, "memory": "2g"},
        "sources": {"a": {"kafka": {"topic": TOPIC, "partitions": 4}}},
        "topics": {TOPIC: {"retention": "1h"}},
        "sinks": {"out": {"files": {"path": "out"}}},
    }
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "clicks"}, "spec": spec}
    (folder / "job.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    kafka = {"kind": "external", "bootstrapServers": around.brokers, "security": "plaintext", "replication": 1}
    return written(folder, lambda spec: spec.update(jobs=["job.yaml"], kafka=kafka, endpoints={"aws": aws}))


class Verb:
    """The command with everything that it asks: only the address of the cluster, which EKS would know, is given to it.

    Args:
        file: of the environment.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def apply(self, replication: int) -> tuple[int, dict[str, Any]]:
        """Applies, and returns the exit code and the document that is printed."""
        out = io.StringIO()
        how = ["--through", "cluster", "--yes", "--replication", str(replication), "--output", "json"]
        with redirect_stdout(out):
            code = main(["topics", "apply", str(self._file), *how])
        return code, json.loads(out.getvalue())


def _name_image(environment: Environment, cluster: ClusterUnderTest, image: str) -> None:
    """Gives the nodes the jobs' image under the name that it has in ECR."""
    made = AwsAccess(environment).client("ecr").create_repository(repositoryName=f"{environment.prefix}/jobs")
    for node in cluster.nodes:
        node.ctr("images", "tag", "--force", image, f"{made['repository']['repositoryUri']}:{environment.spec.registry.image_tag}")


@pytest.fixture
def verb(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Verb]:
    """The verb, and nodes where the pods of the system may run."""
    monkeypatch.delenv("PENSTOCK_IMAGE_TAG", raising=False)
    monkeypatch.setattr("penstock.scripts.topics.in_cluster.cluster_api", lambda *_: nullcontext(cluster.core.api_client))
    file = environment_of(tmp_path, around, local.aws.endpoint)
    environment = load(file)
    _name_image(environment, cluster, around.image)
    labels = dict(system_pods(environment).node_selector)
    nodes = [node.name for node in cluster.nodes]
    for node in nodes:
        cluster.core.patch_node(node, {"metadata": {"labels": labels}})
    yield Verb(file)
    for node in nodes:
        cluster.core.patch_node(node, {"metadata": {"labels": dict.fromkeys(labels)}})
    cluster.objects.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})


def test_topics_are_made_once_and_a_refused_one_is_a_coded_error(
    cluster: ClusterUnderTest, around: Surroundings, verb: Verb, topic: str
) -> None:
    brokers = TopicBrokers(KafkaAccess(around.brokers))

    code, refused = verb.apply(COPIES)
    assert code != 0
    assert [(error["code"], error["path"]) for error in refused["errors"]] == [("TOP-003", f"create {topic}")]
    assert "replication" in refused["errors"][0]["given"].lower()
    assert not refused["applied"]
    assert brokers.existing([topic]) == {}

    code, first = verb.apply(1)
    assert (code, first["errors"], first["through"]) == (0, [], "cluster")
    made = brokers.existing([topic])[topic]
    assert (made.partitions, made.replication, made.config["retention.ms"]) == (4, 1, "3600000")

    code, second = verb.apply(1)
    assert (code, second["errors"]) == (0, [])
    assert [one["actions"] for one in first["topics"]] == [["create"]]
    assert [one["actions"] for one in second["topics"]] == [[]]
    assert brokers.existing([topic])[topic] == made

    left = BatchV1Api(cluster.core.api_client).list_namespaced_job(NAMESPACE).items
    assert [one.metadata.name for one in left if not one.metadata.deletion_timestamp] == []
