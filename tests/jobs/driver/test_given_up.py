"""How often a micro-batch that Spark gives up is run again; that it does so after the loss of executors is in the chaos tests."""

from __future__ import annotations

import pytest

from penstock.jobs.driver.errors import QueryFailed
from penstock.jobs.driver.given_up import GivenUp, Repetitions, is_given_up

FAULT = QueryFailed(path="app", given="A shuffle map stage ...", fix="check the driver's log")


def test_the_failure_is_recognized_by_spark_s_words() -> None:
    said = "Job aborted due to stage failure: A shuffle map stage with indeterminate output was failed and retried. However, Spark cannot"
    assert is_given_up(RuntimeError(said))
    assert not is_given_up(RuntimeError("Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times"))


def test_a_micro_batch_that_is_given_up_again_and_again_fails_the_job() -> None:
    repetitions = Repetitions()
    for _ in range(5):
        repetitions.again(GivenUp(7, FAULT))
    with pytest.raises(QueryFailed) as raised:
        repetitions.again(GivenUp(7, FAULT))
    assert raised.value is FAULT


def test_each_micro_batch_is_counted_anew() -> None:
    repetitions = Repetitions()
    for batch in range(20):
        repetitions.again(GivenUp(batch, FAULT))


def test_each_query_is_counted_by_itself() -> None:
    repetitions = Repetitions()
    for _ in range(5):
        repetitions.again(GivenUp(7, FAULT, "one"))
        repetitions.again(GivenUp(9, FAULT, "other"))
    with pytest.raises(QueryFailed):
        repetitions.again(GivenUp(9, FAULT, "other"))
