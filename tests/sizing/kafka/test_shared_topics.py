"""Partitions of topics that several jobs share."""

from __future__ import annotations

from penstock.sizing.kafka.partitions import most_partitions


def test_a_shared_topic_has_as_many_partitions_as_any_job_asks_for() -> None:
    assert most_partitions([{"a": 4, "b": 1}, {"a": 7}, {"a": 2, "c": 3}]) == {"a": 7, "b": 1, "c": 3}
    assert most_partitions([]) == {}
