from __future__ import annotations

import json

import pytest

from penstock.jobs.driver.lag import JobLag, lag, positions


def _text(**topics: dict[str, int]) -> str:
    return json.dumps(topics)


def test_the_lag_of_a_job_is_summed_over_all_partitions() -> None:
    assert lag([(_text(a={"0": 5, "1": 7}), _text(a={"0": 15, "1": 7}))]) == {"a": 10}


def test_each_topic_has_a_lag_of_its_own() -> None:
    assert lag([(_text(a={"0": 5}), _text(a={"0": 6})), (_text(b={"0": 0}), _text(b={"0": 4}))]) == {"a": 1, "b": 4}


@pytest.mark.parametrize("latest", [None, "", "null", "None", "7"])
def test_a_source_without_end_offsets_is_ignored(latest: str | None) -> None:
    assert lag([(_text(a={"0": 5}), latest)]) == {}


def test_a_topic_that_was_made_anew_is_not_behind_by_less_than_nothing() -> None:
    assert lag([(_text(a={"0": 500}), _text(a={"0": 3}))]) == {"a": 0}


def test_what_a_bounded_run_does_not_read_is_not_counted() -> None:
    ends = {"a": {0: 6, 1: 7}}
    assert lag([(_text(a={"0": 5, "1": 7, "2": 1}), _text(a={"0": 15, "1": 9, "2": 2}))], ends) == {"a": 1 + 0 + 1}
    assert lag([(_text(a={"0": 8}), _text(a={"0": 15}))], ends) == {"a": 0}, "Spark has read on after the end"


def test_a_partition_that_the_query_does_not_read_yet_is_not_counted() -> None:
    assert lag([(_text(a={"0": 5}), _text(a={"0": 6, "1": 900}))]) == {"a": 1}


class _Shown:
    """Keeps what a gauge shows."""

    def __init__(self) -> None:
        self.records: list[int] = []

    def behind(self, records: int) -> None:
        self.records.append(records)


def test_the_lag_of_a_job_is_that_of_the_query_that_has_read_the_least_of_each_topic() -> None:
    shown = _Shown()
    job = JobLag(shown, ["one", "two"])
    latest_a, latest_b = _text(a={"0": 10}), _text(b={"0": 4})
    assert job.committed("one", [(_text(a={"0": 8}), latest_a)]) == {"a": 2}
    assert job.committed("two", [(_text(a={"0": 3}), latest_a), (_text(b={"0": 1}), latest_b)]) == {"a": 7, "b": 3}
    assert job.committed("one", [(_text(a={"0": 10}), latest_a)]) == {"a": 0}
    assert job.idle("one") == 10
    assert job.idle("two") == 0
    assert shown.records == [2, 10, 10, 10, 0]


def test_a_query_that_reports_nothing_is_behind_what_others_see_of_its_topics() -> None:
    job = JobLag(_Shown(), ["stuck", "other"])
    job.committed("stuck", [(_text(a={"0": 5}), _text(a={"0": 5})), (_text(b={"0": 1}), _text(b={"0": 1}))])
    for end in (20, 30):
        job.committed("other", [(_text(a={"0": end}), _text(a={"0": end}))])
        assert job.records == end - 5
    assert job.idle("other") == 25


def test_a_job_is_idle_while_each_of_its_queries_has_read_everything() -> None:
    job = JobLag(_Shown(), ["one", "two"])
    assert not job.all_idle
    job.idle("one")
    assert not job.all_idle
    job.idle("two")
    assert job.all_idle
    job.committed("one", [(_text(a={"0": 8}), _text(a={"0": 8}))])
    assert not job.all_idle
    job.idle("one")
    assert job.all_idle
    job.began("two")
    assert not job.all_idle


def test_positions_are_those_of_the_source_that_has_read_the_least_of_a_topic() -> None:
    ends = [{"clicks": {0: 5, 1: 9}}, {"clicks": {0: 3}}, {}]
    latest = [{"clicks": {0: 7, 1: 9}}, {"clicks": {0: 7}}, {}]
    assert positions(ends, latest, {}) == {"clicks": {0: (3, 7), 1: (9, 9)}}


def test_a_replayed_micro_batch_has_no_ends_of_topics() -> None:
    assert positions([{"clicks": {0: 5}}], [], {}) == {"clicks": {0: (5, None)}}


def test_positions_of_a_bounded_run_end_where_it_ends() -> None:
    assert positions([{"clicks": {0: 5, 1: 2}}], [{"clicks": {0: 9, 1: 9}}], {"clicks": {0: 4}}) == {"clicks": {0: (4, 4), 1: (2, 9)}}
