"""Reads a run's results back, compares them with the expectation, and prints both."""

from __future__ import annotations

from penstock.jobs.stream.streams import Tag
from penstock.scripts.errors import WrongResult
from penstock.scripts.local import verdict
from penstock.scripts.local.run import LocalRun
from penstock.scripts.local.verdict import Outcome, Verdict
from penstock.scripts.progress import Steps
from penstock.scripts.render.bytes_text import bytes_text

# Side outputs whose reasons are shown.
_SAID_WHY = (Tag.QUARANTINED, Tag.FAILED)


def check(one: LocalRun, steps: Steps) -> tuple[Outcome, Verdict]:
    """Reads the result back, compares it with the expectation and prints both.

    Args:
        one: a run that has processed its input.
        steps: receives the lines.

    Raises:
        ExpectationFailed: RUN-017.
    """
    with steps.at("check", "reading the results back and computing the expected results") as step:
        expected = one.expectation()
        outcome = one.outcome(expected)
        judged = verdict.judge(outcome, expected) if expected else _balance(one, outcome)
        step.said = "results read back"
    _show(one, outcome, judged, steps)
    return outcome, judged


def wrong(job: str, judged: Verdict) -> WrongResult:
    """RUN-016, for a verdict with differences."""
    return WrongResult(path=job, given="\n       ".join(judged.differences), need=judged.checked, fix="check the job, or its expectation")


def _balance(one: LocalRun, outcome: Outcome) -> Verdict:
    limit = one.job.spec.job.spec.quarantine
    bad_share = verdict.BAD_SHARE if limit is None else limit.share
    return verdict.balance(outcome, changes_row_counts=one.job.changes_row_counts, repeats=_repeats(one), bad_share=bad_share)


def _repeats(one: LocalRun) -> str | None:
    """What of a job may write a record several times."""
    if any(sink.feedback is not None for sink in one.job.spec.job.spec.kafka_sinks.values()):
        return "a feedback"
    return "several queries" if len(one.progress.readings) > 1 else None


def _show(one: LocalRun, outcome: Outcome, judged: Verdict, steps: Steps) -> None:
    fed = ", ".join(f"{place} {records:,}" for place, records in one.given.items())
    flush = sum(len(what.flush) for what in one.fed.values())
    steps.line("in", f"{outcome.rows_in:,} records ({fed})" + (f"; {flush} flush events not counted" if flush else ""))
    if one.progress.partitions:
        steps.line("partitions", "\n".join(one.progress.partitions))
    plural = "s" if outcome.files > 1 else ""
    files = f" in {outcome.files} file{plural}, {bytes_text(outcome.bytes)}" if outcome.files else ""
    steps.line("out", f"{outcome.rows:,} rows{files}: {one.results.place()}")
    for tag, count in {Tag.QUARANTINED: outcome.quarantined, Tag.LATE: outcome.late, **outcome.side_outputs}.items():
        topic = one.results.side_output_topic(tag)
        reasons = one.results.reasons(tag) if count and tag in _SAID_WHY else []
        steps.line(tag, "\n".join([f"{count:,}" + (f" in topic {topic}" if topic else ", counted only"), *map(str, reasons)]))
    if outcome.filtered or outcome.unmatched:
        steps.line("not written", f"{outcome.filtered:,} filtered, {outcome.unmatched:,} unmatched so far")
    rate = outcome.rows_in / max(0.001, one.processing_ms / 1000)
    steps.line(
        "throughput", f"{rate:,.0f} records/s over {one.micro_batches} micro-batches, {one.processing_ms / 1000:.1f} s of processing"
    )
    steps.line("verdict", str(judged))
