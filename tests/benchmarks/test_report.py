from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.streaming import report
from benchmarks.streaming.latency import Latency, no_latency
from benchmarks.streaming.results import Machine, Measured, Run, joined, read, same, write
from benchmarks.streaming.round_result import TOTAL, MicroBatches, Result

MACHINE = Machine("2026-11-23", 2, 8.0, "a processor", "Linux 6", "openjdk 17", "3.11.2", "4.3.0")


def _result(per_cpu_s: float, *, wrong: tuple[str, ...] = (), requests: float | None = None) -> Result:
    batches = None if requests is None else MicroBatches(12, 5_000, {TOTAL: 900, "addBatch": 700, "walCommit": 60}, requests)
    return Result(60_000, 30.0, 50.0, per_cpu_s * 2, per_cpu_s, 1_200.0, wrong, batches)


def _measured(workload: str = "tumbling", share: float = 1.0) -> Measured:
    results = {
        "penstock": [_result(3_000), _result(4_000), _result(2_000)],
        "plain": [_result(4_000, requests=30), _result(4_200, requests=34)],
        "plain_keeping": [_result(2_000), _result(9_000, wrong=("failed: no broker",))],
        "flink": [_result(0, wrong=("2 rows lost, such as {}",))],
    }
    return Measured(workload, "windows", 60_000, results, share)


def _run(*measured: Measured) -> Run:
    return Run(MACHINE, measured, {"plain": [Latency(1_000, 60_000, 120.4, 300.2, 800.9), no_latency(5_000, "failed: gone")]})


def _line(page: str, beginning: str) -> str:
    return next(line for line in page.splitlines() if line.startswith(beginning))


def test_figures_are_medians_with_their_spread_and_ratios() -> None:
    page = report.page(_run(_measured()))
    assert _line(page, "| penstock | 3").startswith(
        "| penstock | 3,000 (2,000 to 4,000) | 1.50 | 0.73 | 6,000 (4,000 to 8,000) | 50 (50 to 50)"
    )
    assert _line(page, "| plain | 4").startswith("| plain | 4,100 (4,000 to 4,200) | 2.05 | 1.00 |")


def test_a_round_that_does_not_count_is_in_no_figure_and_is_named() -> None:
    page = report.page(_run(_measured()))
    assert _line(page, "| plain_keeping | 2").startswith("| plain_keeping | 2,000 | 1.00 |")
    assert "1 of 2 rounds of plain_keeping do not count: `failed: no broker`." in page
    assert "| flink | no round counts | | | | | | |" in page
    assert "1 of 1 rounds of flink do not count: `2 rows lost, such as {}`." in page


def test_a_page_says_what_has_not_been_measured() -> None:
    page = report.page(_run(_measured()))
    assert "| consumer | no results | | | | | | |" in page
    assert "There are no results of `ads`, `ads_redis`, `error_logs`, `sessions`" in page
    assert "| penstock | no results | | | |" in page
    assert "| plain | 5,000 | no figures: `failed: gone` | | |" in page
    assert "**There are no results yet.**" not in page
    for without in (None, Run(MACHINE, [])):
        assert "**There are no results yet.**" in report.page(without)
        assert report.PLOT not in report.page(without)
    only_latencies = report.page(_run())
    assert "| plain | 1,000 | 120 | 300 | 801 |" in only_latencies
    assert report.PLOT not in only_latencies


def test_a_job_that_sql_cannot_say_has_no_row_of_flink() -> None:
    page = report.page(_run(_measured("files")))
    assert "| flink | no round counts" not in page
    assert "PyFlink SQL has no counterpart of this job." in page


def test_a_run_with_fewer_records_says_so() -> None:
    assert "Not a full run" not in report.page(_run(_measured()))
    assert "**Not a full run** of `ads` with 0.5%, `files` with 20.0% of the records: " in report.page(
        _run(_measured("files", 0.2), _measured(), _measured("ads", 0.005))
    )


def test_phases_and_requests_of_a_micro_batch_are_medians_of_the_rounds() -> None:
    page = report.page(_run(_measured()))
    assert "| contestant | micro-batches | records | S3 requests | triggerExecution, ms | addBatch, ms | walCommit, ms |" in page
    assert "| plain | 12 | 5,000 | 32 | 900 | 700 | 60 |" in page


def test_rows_that_came_at_once_are_shown_without_figures_after_the_start() -> None:
    one = Measured("tumbling", "windows", 60_000, {"plain": [_result(0)], "flink": [_result(10)]})
    page = report.page(_run(one))
    assert "| plain | - | - | - | - | 50 |" in page
    assert "| flink | 10 | - | - | 20 |" in page


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = _run(_measured(), _measured("ads", 0.005))
    write(tmp_path / "results.json", run)
    assert report.page(read(tmp_path / "results.json")) == report.page(run)


def test_later_results_take_the_place_of_earlier_ones() -> None:
    before, after = _run(_measured("ads"), _measured("files")), Run(MACHINE, [_measured("ads", 0.5)], {"flink": []})
    both = joined(before, after)
    assert [(one.workload, one.share) for one in both.measured] == [("files", 1.0), ("ads", 0.5)]
    assert set(both.latencies) == {"plain", "flink"}
    assert joined(None, after) is after


def test_results_of_several_machines_are_kept_apart() -> None:
    """The contestants of a job are compared on one machine."""
    other = replace(MACHINE, date="2026-11-25", cores=4)
    both = joined(_run(_measured("ads"), _measured("files")), Run(other, [_measured("ads")]))
    assert [(one.workload, both.machine_of(one).cores) for one in both.measured] == [("files", 2), ("ads", 4)]
    page = report.page(both)
    assert "`files`, the latency: measured on 2026-11-23 on 2 cores" in page
    assert "`ads`: measured on 2026-11-25 on 4 cores" in page
    assert "Not all jobs were measured on the same machine" in page
    timed = joined(both, Run(other, [], {"flink": []}))
    assert set(timed.latencies) == {"flink"}
    assert "Not all jobs" not in report.page(joined(_run(_measured("ads")), _run(_measured("files"))))


def test_a_machine_is_named_once_with_each_day_on_which_it_has_measured() -> None:
    later = Run(replace(MACHINE, date="2026-11-25"), [_measured("ads")])
    page = report.page(joined(_run(_measured("files")), later))
    assert "Measured on 2026-11-23 and 2026-11-25 on 2 cores" in page


@pytest.mark.parametrize(("other", "expected"), [({"date": "2026-11-24"}, True), ({"cores": 4}, False), ({"pyspark": "4.4.0"}, False)])
def test_results_of_another_machine_are_not_the_same(other: dict[str, str | int], expected: bool) -> None:
    assert same(MACHINE, Machine(**{**vars(MACHINE), **other})) is expected
