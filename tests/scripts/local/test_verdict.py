"""What came out against what had to come out, and whether a person can read the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.local.recording import Expectation
from penstock.jobs.spec.app_module import AppModule
from penstock.scripts.local.verdict import Outcome, Verdict, balance, canonical, judge


def _outcome(rows: int = 2, *, rows_in: int = 2, **more: Any) -> Outcome:
    return Outcome(rows_in=rows_in, rows=rows, **{"quarantined": 0, "late": 0, **more})


def _counted(*rows: Mapping[str, Any]) -> Counter[str]:
    return Counter(canonical(row) for row in rows)


def test_what_is_as_expected_has_no_differences() -> None:
    exact = _counted({"name": "one"}, {"name": "two"})
    result = judge(_outcome(counted=exact, quarantined=3, late=1), Expectation(rows=2, quarantined=3, late=1, exact=exact))
    assert result.differences == ()
    assert result.checked == "all rows and side outputs match the expected results computed from the recorded input"


def test_each_count_that_is_wrong_is_told_with_both_numbers() -> None:
    result = judge(_outcome(1_000_001, quarantined=2), Expectation(rows=1_000_000, quarantined=3, late=1))
    assert result.differences == (
        "rows: got 1,000,001, expected 1,000,000",
        "quarantined: got 2, expected 3",
        "late: got 0, expected 1",
    )
    assert result.checked == "rows, quarantined, late match the expected results computed without Spark"


def test_a_measure_that_is_wrong_or_not_there_is_told() -> None:
    expected = Expectation(rows=2, measures={"sum of distance": 5_000, "carriers": "AA, UA", "sum of temp": 7})
    result = judge(_outcome(measures={"sum of distance": 4_999, "carriers": "AA"}), expected)
    assert result.differences == (
        "sum of distance: got 4,999, expected 5,000",
        "carriers: got AA, expected AA, UA",
        "sum of temp: got None, expected 7",
    )


def test_a_row_that_is_missing_and_one_that_is_unexpected_are_shown() -> None:
    # As many rows as expected: only the rows themselves tell.
    expected = Expectation(rows=2, exact=_counted({"name": "one"}, {"name": "two"}))
    result = judge(_outcome(counted=_counted({"name": "one"}, {"name": "wrong"})), expected)
    assert result.differences == (
        "1 missing rows, for example:",
        '    1 x {"name": "two"}',
        "1 unexpected rows, for example:",
        '    1 x {"name": "wrong"}',
    )


def test_a_row_that_is_there_too_often_is_unexpected_as_often() -> None:
    row = {"name": "one"}
    result = judge(_outcome(3, counted=_counted(row, row, row)), Expectation(rows=1, exact=_counted(row)))
    assert result.differences == (
        "rows: got 3, expected 1",
        "2 unexpected rows, for example:",
        '    2 x {"name": "one"}',
    )


def test_of_many_rows_a_few_are_shown_and_all_are_counted() -> None:
    exact = _counted(*({"number": number} for number in range(1_200)))
    missing, *examples = judge(_outcome(1_200, counted=Counter()), Expectation(rows=1_200, exact=exact)).differences
    assert missing == "1,200 missing rows, for example:"
    assert len(examples) == 5


def test_rows_are_the_same_whatever_the_order_of_their_fields() -> None:
    assert canonical({"a": 1, "b": None}) == canonical({"b": None, "a": 1})
    assert canonical({"a": 1}) != canonical({"a": "1"})


def _balance(outcome: Outcome, *, changes_row_counts: bool) -> Verdict:
    """Of small outcomes, in which a few quarantined records are a large share."""
    return balance(outcome, changes_row_counts=changes_row_counts, bad_share=0.5)


def test_without_an_expectation_rows_in_are_held_against_all_that_came_out() -> None:
    assert _balance(_outcome(5, rows_in=11, quarantined=3, late=2, filtered=1), changes_row_counts=False).differences == ()


def test_what_an_app_diverts_by_a_tag_of_its_own_is_no_loss() -> None:
    result = _balance(_outcome(5, rows_in=11, quarantined=3, late=0, side_outputs={"failed": 2, "refunds": 1}), changes_row_counts=False)
    assert result.differences == ()
    assert result.checked == "rows in = out + quarantined + late + filtered + failed + refunds"


_HINT = "a job that aggregates or multiplies rows needs an `expect`"


def test_a_lost_row_tips_the_balance() -> None:
    (difference,) = _balance(_outcome(1_004, rows_in=1_011, quarantined=3, late=2, filtered=1), changes_row_counts=False).differences
    assert difference == f"rows: 1,004 out + 3 quarantined + 2 late + 1 filtered = 1,010, but 1,011 rows were read; {_HINT}"


def test_a_balance_says_that_it_has_checked_nothing_where_a_join_multiplies_or_drops_rows() -> None:
    for outcome in (_outcome(12, rows_in=11), _outcome(5, rows_in=11, unmatched=1)):
        result = _balance(outcome, changes_row_counts=False)
        assert result.differences == ()
        assert str(result).startswith("nothing to compare: ")


def test_rows_that_come_back_by_a_feedback_are_no_difference() -> None:
    """Of ten records five are filtered out, and one comes back once: eleven were processed."""
    outcome = _outcome(6, rows_in=10, quarantined=0, late=0, filtered=5)
    assert balance(outcome, changes_row_counts=False).differences
    result = balance(outcome, changes_row_counts=False, repeats="a feedback")
    assert (result.compared, result.differences) == (False, ())
    assert result.checked == "a feedback may write a record several times; add `expect` to the spec"


def test_a_balance_says_that_it_has_checked_nothing_where_a_job_makes_fewer_rows_of_many() -> None:
    result = _balance(_outcome(4, rows_in=1_011, quarantined=3), changes_row_counts=True)
    assert result.differences == ()
    assert str(result).startswith("nothing to compare: 4 out + 3 quarantined + ") and "of 1,011 rows" in result.checked
    assert str(_balance(_outcome(1_008, rows_in=1_011, quarantined=3), changes_row_counts=True)).startswith("correct: rows in = ")


def test_a_job_with_state_that_gives_nothing_tips_the_balance() -> None:
    assert _balance(_outcome(0, rows_in=1_011, quarantined=3), changes_row_counts=True).differences


def test_what_a_deduplication_drops_is_counted_so_that_a_lost_row_still_tips_the_balance() -> None:
    path = Path("app.py")
    changing = {
        calls: AppModule(path=path, stateful_calls=calls).changes_row_counts for calls in ((), ("deduplicate",), ("deduplicate", "top"))
    }
    assert changing == {(): False, ("deduplicate",): False, ("deduplicate", "top"): True}


@pytest.mark.parametrize("changes_row_counts", [False, True])
@pytest.mark.parametrize("repeats", [None, "several queries"])
def test_nothing_out_of_something_in_is_wrong_whatever_adds_up(changes_row_counts: bool, repeats: str | None) -> None:
    for outcome in (_outcome(0, rows_in=20, filtered=20), _outcome(0, rows_in=20, unmatched=3)):
        result = balance(outcome, changes_row_counts=changes_row_counts, repeats=repeats)
        assert result.differences == ("no row came out of 20 records; if the job is right, add `expect` to the spec",)
        assert str(result).startswith("WRONG: ")


def test_all_records_in_the_quarantine_are_two_faults() -> None:
    nothing, quarantined = balance(_outcome(0, rows_in=20, quarantined=20), changes_row_counts=False).differences
    assert nothing.startswith("no row came out of 20 records")
    hint = "if they are meant to be, set spec.quarantine.share, or add `expect` to the spec"
    assert quarantined == f"20 of 20 records are quarantined, 100.0%; {hint}"


def test_a_share_of_quarantined_records_above_one_percent_is_wrong_unless_the_spec_allows_more() -> None:
    assert balance(_outcome(990, rows_in=1_000, quarantined=10), changes_row_counts=False).differences == ()
    outcome = _outcome(989, rows_in=1_000, quarantined=11)
    result = balance(outcome, changes_row_counts=False)
    assert result.checked == "rows in the output, and at most 1.00% of the records quarantined"
    assert len(result.differences) == 1
    assert balance(outcome, changes_row_counts=False, bad_share=0.02).differences == ()


def test_a_job_that_writes_only_side_outputs_of_its_own_has_written_something() -> None:
    assert balance(_outcome(0, rows_in=20, side_outputs={"alerts": 20}), changes_row_counts=False).differences == ()


def test_rows_that_an_output_does_not_keep_have_come_out() -> None:
    result = balance(_outcome(0, rows_in=20, unread=18), changes_row_counts=False, repeats="several queries")
    assert (result.differences, result.compared) == ((), False)


def test_no_records_give_no_rows() -> None:
    assert balance(_outcome(0, rows_in=0), changes_row_counts=False).differences == ()
