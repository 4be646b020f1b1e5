"""Planned changes of topics, with plain data."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scripts.topics.difference import Changed, ExistingTopic, TopicChange, WantedTopic, changes

DAY, WEEK = "86400000", "604800000"
DEFAULTS = {"retention.ms": WEEK, "cleanup.policy": "delete", "max.message.bytes": "1048588", "retention.bytes": "-1"}


def existing(config: Mapping[str, str] | None = None, replication: int = 3) -> ExistingTopic:
    return ExistingTopic(4, replication, {**DEFAULTS, **(config or {})})


def wanted(
    partitions: int = 4,
    config: Mapping[str, str] | None = None,
    *,
    asked: bool = False,
    replication: int = 3,
    at_creation: Mapping[str, str] | None = None,
    at_least: Mapping[str, int] | None = None,
) -> WantedTopic:
    return WantedTopic("clicks", partitions, asked, replication, False, config or {}, at_creation or {}, at_least or {})


def change(topic: WantedTopic, current: ExistingTopic | None, *, lose_records: bool = False) -> TopicChange:
    (only,) = changes([topic], {} if current is None else {"clicks": current, "other": existing()}, lose_records=lose_records)
    return only


def given_up(one: TopicChange) -> list[str]:
    return [given for given, _, _ in one.refused]


def test_a_missing_topic_is_created_with_all_its_settings() -> None:
    topic = wanted(12, config={"cleanup.policy": "compact"}, at_creation={"retention.ms": DAY}, at_least={"max.message.bytes": 8_000_000})
    made = change(topic, None)
    assert (made.actions, made.partitions, made.replication) == (("create",), Changed(None, "12"), Changed(None, "3"))
    assert {name: one.after for name, one in made.config.items()} == {
        "retention.ms": DAY,
        "max.message.bytes": "8000000",
        "cleanup.policy": "compact",
    }


def test_what_is_as_wanted_stays() -> None:
    topic = wanted(config={"retention.ms": WEEK}, at_creation={"segment.ms": "5"}, at_least={"max.message.bytes": 1_000_000})
    assert change(topic, existing()) == TopicChange("clicks", (), Changed("4", "4"), Changed("3", "3"))


def test_a_topic_grows_and_it_is_said_that_keys_move() -> None:
    grown = change(wanted(6), existing())
    assert (grown.actions, grown.partitions, grown.refused) == (("grow",), Changed("4", "6"), ())
    assert [warning for warning in grown.warnings if "most keys map to another partition" in warning]


@pytest.mark.parametrize("config", [{"cleanup.policy": "compact,delete"}, {}])
def test_a_compacted_topic_that_grows_keeps_old_records_of_its_keys(config: dict[str, str]) -> None:
    grown = change(wanted(6, config), existing({"cleanup.policy": "delete,compact"}))
    assert grown.actions == ("grow",)
    assert [warning for warning in grown.warnings if "never compacted" in warning]


def test_partitions_requested_by_a_spec_are_never_removed() -> None:
    refused = change(wanted(2, asked=True), existing())
    assert (refused.actions, given_up(refused), refused.partitions) == ((), ["2 partitions"], Changed("4", "4"))
    assert refused.refused[0][2] == "partitions: 4, or a topic with another name"


def test_partitions_above_the_plans_are_kept_and_reported() -> None:
    kept = change(wanted(2), existing())
    assert (kept.actions, kept.refused) == ((), ())
    assert kept.warnings == ("keeps 4 partitions; the plan needs 2",)


def test_replicas_are_neither_added_nor_removed() -> None:
    assert given_up(change(wanted(replication=3), existing(replication=1))) == ["3 replicas"]
    fewer = WantedTopic("clicks", 4, replication=2, replication_asked=True)
    assert given_up(change(fewer, existing(replication=3))) == ["2 replicas"]


def test_more_replicas_than_the_environments_are_kept_and_reported() -> None:
    kept = change(wanted(replication=2), existing(replication=3))
    assert (kept.actions, kept.refused, kept.warnings) == ((), (), ("keeps 3 replicas; the environment's default is 2",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"retention.ms": DAY}),
        ({"retention.ms": "-1"}, {"retention.ms": WEEK}),
        ({}, {"retention.bytes": "1000000"}),
        ({}, {"cleanup.policy": "compact"}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}),
    ],
)
def test_a_setting_by_which_records_go_is_refused_until_it_is_allowed(before: dict[str, str], after: dict[str, str]) -> None:
    topic, current = wanted(config=after), existing(before)
    refused = change(topic, current)
    assert (refused.actions, len(refused.refused)) == ((), 1)
    assert "--lose-records" in refused.refused[0][2]
    allowed = change(topic, current, lose_records=True)
    assert (allowed.actions, allowed.refused) == (("configure",), ())
    assert [warning for warning in allowed.warnings if "the brokers delete existing records" in warning]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"retention.ms": "-1"}),
        ({}, {"compression.type": "zstd"}),
        ({"cleanup.policy": "compact,delete"}, {"cleanup.policy": "delete"}),
        ({}, {"max.message.bytes": "100"}),
    ],
)
def test_any_other_setting_is_set(before: dict[str, str], after: dict[str, str]) -> None:
    one = change(wanted(config=after), existing(before))
    assert (one.actions, one.refused) == (("configure",), ())
    assert {name: changed.after for name, changed in one.config.items()} == after


@pytest.mark.parametrize("same", [{"cleanup.policy": "delete , compact"}, {"min.cleanable.dirty.ratio": "0.50"}])
def test_a_value_that_is_only_written_otherwise_is_no_difference(same: dict[str, str]) -> None:
    current = ExistingTopic(4, 3, {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.5"})
    assert change(wanted(config=same), current).actions == ()


def test_a_setting_that_must_not_be_less_is_raised_and_never_lowered() -> None:
    topic = wanted(at_least={"max.message.bytes": 8_000_000})
    assert change(topic, existing()).config == {"max.message.bytes": Changed("1048588", "8000000")}
    assert change(topic, existing({"max.message.bytes": "9000000"})).actions == ()
    own = wanted(at_least={"max.message.bytes": 8_000_000}, config={"max.message.bytes": "2000000"})
    assert change(own, existing()).config == {"max.message.bytes": Changed("1048588", "2000000")}


def test_nothing_is_done_to_a_topic_of_which_something_is_refused() -> None:
    one = change(wanted(6, replication=5, config={"segment.ms": "7"}), existing())
    assert (one.actions, given_up(one)) == ((), ["5 replicas"])


_TOPICS = st.builds(
    WantedTopic,
    name=st.just("clicks"),
    partitions=st.integers(1, 20),
    partitions_asked=st.booleans(),
    replication=st.integers(1, 4),
    replication_asked=st.booleans(),
    config=st.dictionaries(st.sampled_from(["retention.ms", "segment.ms"]), st.integers(-1, 9).map(str)),
    at_creation=st.dictionaries(st.just("retention.ms"), st.integers(-1, 9).map(str)),
    at_least=st.dictionaries(st.just("max.message.bytes"), st.integers(0, 9)),
)


@given(first=_TOPICS, then=_TOPICS, lose_records=st.booleans())
def test_what_was_done_need_not_be_done_again_and_nothing_ever_shrinks(first: WantedTopic, then: WantedTopic, lose_records: bool) -> None:
    current = _done(change(first, None), None)
    after = change(then, current, lose_records=lose_records)
    if not after.refused:
        again = _done(after, current)
        assert again.partitions >= current.partitions
        assert change(then, again).actions == ()
    else:
        assert after.actions == ()


def _done(one: TopicChange, current: ExistingTopic | None) -> ExistingTopic:
    before = {} if current is None else current.config
    settings = {**before, **{name: changed.after for name, changed in one.config.items()}}
    return ExistingTopic(int(one.partitions.after), int(one.replication.after), settings)
