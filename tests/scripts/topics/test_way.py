"""How topics are managed, as far as it needs no AWS; and MSK's format of settings."""

from __future__ import annotations

import base64
import socket
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.scripts.topics.msk_cluster import MskCluster
from penstock.scripts.topics.msk_topics import MskTopics, decoded
from penstock.scripts.topics.way import by_msk, in_cluster, reaches, refuse_brokers_options
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read

ARN = "arn:aws:kafka:us-east-1:111122223333:cluster/shared/0-1"


def environment(folder: Path, kafka: dict[str, Any]) -> Environment:
    return read(folder, lambda spec: spec.update(kafka=kafka, jobs=[]))


@pytest.mark.parametrize("kafka", [{"kind": "serverless"}, {"kind": "external", "bootstrapServers": "a:9092", "security": "plaintext"}])
def test_brokers_whose_topics_msk_does_not_manage_are_asked_themselves(kafka: dict[str, Any], tmp_path: Path) -> None:
    one = environment(tmp_path, kafka)
    assert by_msk(one, asked=False) is None
    with pytest.raises(PenstockError) as raised:
        by_msk(one, asked=True)
    assert (raised.value.code, raised.value.exit_code) == ("TOP-010", 2)


def test_msks_api_takes_no_address() -> None:
    refuse_brokers_options(None, ["--brokers"])
    refuse_brokers_options("here", ["--brokers", "--security"])
    refuse_brokers_options("msk-api", [])
    with pytest.raises(PenstockError) as raised:
        refuse_brokers_options("msk-api", ["--secret"])
    assert raised.value.code == "USE-001"


def test_brokers_are_reached_if_one_of_them_accepts_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert reaches(f"127.0.0.1:1,127.0.0.1:{port}")
    assert not reaches(f"127.0.0.1:1,127.0.0.1:{port}")
    assert not reaches("no-such-host.invalid:9098")


def test_an_environment_without_a_cluster_or_a_job_has_no_pod_for_topics(tmp_path: Path) -> None:
    one = environment(tmp_path, {"kind": "serverless"})
    for broken, jobs in ((one, []), (one.with_spec(eks=None), ["clicks"])):
        with pytest.raises(PenstockError) as raised, in_cluster(broken, [], jobs, lose_records=False):
            pass
        assert (raised.value.code, raised.value.exit_code) == ("TOP-014", 2)


@pytest.mark.parametrize(
    ("version", "why"),
    [("3.9.x.kraft", None), ("3.6.0", None), ("4.1.x.kraft", None), ("3.5.1", "Kafka 3.5.1"), (None, "a serverless cluster")],
)
def test_clusters_of_old_versions_and_serverless_ones_have_no_topic_api(version: str | None, why: str | None) -> None:
    assert MskCluster(ARN, "ACTIVE", version, 3).without_topics_api == why


def test_a_cluster_that_is_not_active_is_reported() -> None:
    with pytest.raises(PenstockError) as raised:
        MskTopics(None, MskCluster(ARN, "UPDATING", "3.9.x", 3))
    assert (raised.value.code, raised.value.given) == ("TOP-005", "its state is UPDATING")


@pytest.mark.parametrize("text", ['{"retention.ms": 5, "preallocate": false}', "retention.ms=5\npreallocate=false"])
def test_both_formats_of_settings_are_read(text: str) -> None:
    assert decoded(base64.b64encode(text.encode()).decode()) == {"retention.ms": "5", "preallocate": "false"}


def test_a_cluster_of_another_account_or_region_is_refused_with_its_line(tmp_path: Path) -> None:
    own = {"kind": "external", "security": "iam", "bootstrapServers": "b-1.example:9098"}
    assert environment(tmp_path, {**own, "clusterArn": ARN}).spec.kafka is not None
    for arn in (ARN.replace("111122223333", "210987654321"), ARN.replace("us-east-1", "eu-west-1")):
        with pytest.raises(PenstockError) as raised:
            environment(tmp_path, {**own, "clusterArn": arn})
        error = raised.value
        assert (error.code, error.exit_code, error.path) == ("INF-065", 2, "spec.kafka.clusterArn")
        assert error.at is not None and error.at.line is not None
    for kafka in (own, {**own, "security": "tls", "clusterArn": ARN}, {"kind": "standard", "clusterArn": ARN}):
        with pytest.raises(PenstockError) as raised:
            environment(tmp_path, kafka)
        assert "clusterArn with kind: external and security: iam" in (raised.value.need or "")
