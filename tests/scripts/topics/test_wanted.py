"""Topics required by the jobs of an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.plans import plans
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES
from penstock.scripts.topics.difference import WantedTopic
from penstock.scripts.topics.wanted import wanted_topics
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read

EXECUTOR = {"slots": 4, "memory": "16g"}


def job(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": name}, "spec": {"app": "app", **spec}}


def topics(folder: Path, *jobs: dict[str, Any], kafka: dict[str, Any] | None = None, endpoints: bool = False) -> dict[str, WantedTopic]:
    environment = of(folder, *jobs, kafka=kafka or {"kind": "standard"}, endpoints=endpoints)
    return {topic.name: topic for topic in wanted_topics(environment, plans(environment))}


def of(folder: Path, *jobs: dict[str, Any], kafka: dict[str, Any], endpoints: bool = False) -> Environment:
    (folder / "app.py").write_text("")
    for one in jobs:
        (folder / f"{one['metadata']['name']}.yaml").write_text(yaml.safe_dump(one))

    def change(spec: dict[str, Any]) -> None:
        spec.update(jobs=[f"{one['metadata']['name']}.yaml" for one in jobs], kafka=kafka)
        if endpoints:
            spec["endpoints"] = {"aws": "http://127.0.0.1:4566"}

    return read(folder, change)


def reader(name: str, parallelism: int, **spec: Any) -> dict[str, Any]:
    sources = {"a": {"kafka": {"topic": "clicks"}}}
    return job(name, parallelism=parallelism, executor=EXECUTOR, sources=sources, **spec)


def test_partitions_are_those_of_the_plan_that_needs_the_most(tmp_path: Path) -> None:
    merged = topics(tmp_path, reader("one", 4), reader("two", 7))
    assert (merged["clicks"].partitions, merged["clicks"].partitions_asked) == (7, False)


def test_replication_and_retention_are_the_environments_where_no_spec_has_them(tmp_path: Path) -> None:
    merged = topics(tmp_path, reader("one", 4), kafka={"kind": "standard", "replication": 2, "retention": "6h"})["clicks"]
    assert (merged.replication, merged.replication_asked, merged.at_creation) == (
        2,
        False,
        {"retention.ms": "21600000"},
    )
    asked = {"clicks": {"replication": 3, "retention": "1d", "partitions": 5}}
    own = topics(tmp_path, reader("one", 4, topics=asked))["clicks"]
    assert (own.partitions, own.partitions_asked, own.replication, own.replication_asked) == (5, True, 3, True)
    assert (own.config, own.at_creation) == ({"retention.ms": "86400000"}, {})


def test_a_load_says_how_long_its_records_stay(tmp_path: Path) -> None:
    load = {"eventsPerSecond": 100, "eventBytes": 100, "eventsPerSlot": 1000, "retention": "3d", "replication": 2}
    sources = {"a": {"kafka": {"topic": "clicks"}}}
    merged = topics(tmp_path, job("one", load=load, executor={"slots": 4}, sources=sources))["clicks"]
    assert (merged.replication, merged.at_creation) == (2, {"retention.ms": str(3 * 86_400_000)})


def test_a_topic_that_a_job_writes_accepts_its_largest_records_and_one_that_it_reads_is_unchanged(tmp_path: Path) -> None:
    sinks = {"errors": {"kafka": {"topic": "errors"}}, "late": {"kafka": {"topic": "late"}}}
    asked = {"late": {"config": {"max.message.bytes": 2_000_000}}}
    merged = topics(tmp_path, reader("one", 4, sinks=sinks, topics=asked))
    assert merged["errors"].at_least == {"max.message.bytes": MAX_RECORD_BYTES}
    assert (merged["late"].at_least, merged["late"].config) == ({}, {"max.message.bytes": "2000000"})
    assert merged["clicks"].at_least == {}


def test_a_compacted_topic_keeps_its_records_forever(tmp_path: Path) -> None:
    merged = topics(tmp_path, reader("one", 4, topics={"clicks": {"cleanupPolicy": "compact"}}))["clicks"]
    assert (merged.config, merged.at_creation) == ({"cleanup.policy": "compact"}, {})


@pytest.mark.parametrize("kind", ["express", "serverless"])
def test_express_and_serverless_keep_three_copies_whatever_is_asked(tmp_path: Path, kind: str) -> None:
    assert topics(tmp_path, reader("one", 4), kafka={"kind": kind, "replication": 2})["clicks"].replication == 3


def test_with_an_emulated_aws_a_topic_has_one_replica(tmp_path: Path) -> None:
    assert topics(tmp_path, reader("one", 4), endpoints=True)["clicks"].replication == 1


def test_copies_that_are_named_win_over_the_environments_and_not_over_a_specs(tmp_path: Path) -> None:
    environment = of(tmp_path, reader("one", 4, topics={"clicks": {"replication": 3}}), kafka={"kind": "standard"})
    assert [topic.replication for topic in wanted_topics(environment, plans(environment), 2)] == [3]
    plain = of(tmp_path, reader("one", 4), kafka={"kind": "standard"})
    assert [topic.replication for topic in wanted_topics(plain, plans(plain), 2)] == [2]


def test_jobs_that_disagree_have_no_topics(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        topics(
            tmp_path,
            reader("one", 4, topics={"clicks": {"retention": "1d"}}),
            reader("two", 4, topics={"clicks": {"retention": "2d"}}),
        )
    assert raised.value.code == "SPEC-013"
