"""The share of quarantined records that stops a job."""

from __future__ import annotations

import pytest

from penstock.jobs.spec import QuarantineLimit
from penstock.jobs.stream.errors import QuarantineLimitReached
from penstock.jobs.stream.quarantine import hold_limit

LIMIT = QuarantineLimit(share=0.5, records=10)


@pytest.mark.parametrize(("bad", "records"), [(0, 0), (9, 9), (10, 20), (1_000, 2_000)])
def test_few_bad_records_or_a_small_share_of_them_pass(bad: int, records: int) -> None:
    hold_limit(LIMIT, None, bad, records)


@pytest.mark.parametrize(("bad", "records"), [(10, 10), (10, 19), (1_001, 2_000)])
def test_a_share_above_the_limit_stops_the_job(bad: int, records: int) -> None:
    with pytest.raises(QuarantineLimitReached, match=f"{bad} of {records} records") as raised:
        hold_limit(LIMIT, None, bad, records)
    assert raised.value.code == "JOB-070"
    assert "at most 50.0% of a micro-batch, if 10 or more are malformed" in raised.value.need


def test_rows_of_a_micro_batch_that_has_read_nothing_are_too_many_too() -> None:
    with pytest.raises(QuarantineLimitReached, match="12 of 0 records: "):
        hold_limit(LIMIT, None, 12, 0)
