from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import BrokersUnreachable
from penstock.jobs.kafka.offset_commits import GroupTopics, JointCommits, OffsetCommits


class Group(Brokers):
    """Brokers that keep what is committed on behalf of the group."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[int, int]] = {}

    def commit(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        self.offsets.update({topic: dict(partitions) for topic, partitions in ends.items()})


def test_a_driver_that_may_have_been_replaced_does_not_set_the_group_back() -> None:
    group, sure = Group(), [True]
    commits = OffsetCommits([GroupTopics(group, frozenset({"a"}))], lambda: sure[0])
    commits.committed({"a": {"0": 5}, "not-asked-for": {"0": 1}})
    assert group.offsets == {"a": {0: 5}}
    sure[0] = False
    commits.committed({"a": {"0": 3}})
    assert group.offsets == {"a": {0: 5}}


def test_of_a_topic_that_several_queries_read_what_all_have_committed_is_committed() -> None:
    group = Group()
    commits = OffsetCommits([GroupTopics(group, frozenset({"a", "b"}))])
    joint = JointCommits(commits, {"one": frozenset({"a"}), "two": frozenset({"a", "b"})})
    joint.committed("one", {"a": {"0": 5, "1": 2}})
    assert group.offsets == {}
    joint.committed("two", {"a": {"0": 3, "1": 9}, "b": {"0": 4}})
    assert group.offsets == {"a": {0: 3, 1: 2}, "b": {0: 4}}
    joint.committed("two", {"a": {"0": 8, "1": 9}, "b": {"0": 4}})
    assert group.offsets == {"a": {0: 5, 1: 2}, "b": {0: 4}}


def test_each_group_gets_the_offsets_of_its_topics_though_another_one_is_unreachable(capsys: pytest.CaptureFixture[str]) -> None:
    class Gone(Group):
        def commit(self, ends: Mapping[str, Mapping[int, int]]) -> None:
            raise BrokersUnreachable(path="brokers", need="a response")

    group = Group()
    commits = OffsetCommits([GroupTopics(Gone(), frozenset({"a"})), GroupTopics(group, frozenset({"b"}))])
    commits.committed({"a": {"0": 5}, "b": {"0": 4}})
    assert group.offsets == {"b": {0: 4}}
    assert "JOB-001" in capsys.readouterr().err
