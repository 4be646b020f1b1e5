from __future__ import annotations

import json

import pytest

from penstock.jobs.driver.lag import lag


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
