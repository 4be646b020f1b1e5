"""Compares the output of a run with the expected output."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.jobs.local.recording import Expectation

_SHOWN = 5
# Quarantined records, as a share of the input, above which a run without an expectation is wrong; `spec.quarantine` may name another one.
BAD_SHARE = 0.01


@dataclass(frozen=True)
class Outcome:
    """What a reader finds after a run.

    Args:
        rows_in: records that the job read, without flush events.
        rows: rows in the output.
        quarantined: records in the quarantine topic.
        late: records in the topic of late rows, or counted by the job if it has none.
        filtered: rows removed by the job's own filters.
        unmatched: rows of a join without a match.
        unread: rows that the job has given to outputs of which nothing can be read back, such as the console.
        files: of the output.
        bytes: of the output.
        counted: the output's rows as sorted JSON; None if not needed.
        measures: the result of the expectation's `measure`.
        sinks: sink -> its rows as sorted JSON, for those that the expectation names.
        side_outputs: tag -> side-output rows, for the tags that the expectation names; without an expectation all tags other than those
            above.
    """

    rows_in: int
    rows: int
    quarantined: int
    late: int
    filtered: int = 0
    unmatched: int = 0
    unread: int = 0
    files: int = 0
    bytes: int = 0
    counted: Counter[str] | None = None
    measures: Mapping[str, object] = field(default_factory=dict)
    sinks: Mapping[str, Counter[str]] = field(default_factory=dict)
    side_outputs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether a run was correct.

    Args:
        checked: what was compared, for people.
        differences: the differences; empty if there are none.
        compared: whether anything was compared.
    """

    checked: str
    differences: tuple[str, ...] = ()
    compared: bool = True

    def __str__(self) -> str:
        return f"{'WRONG' if self.differences else 'correct'}: {self.checked}" if self.compared else f"nothing to compare: {self.checked}"


def judge(outcome: Outcome, expected: Expectation) -> Verdict:
    """Compares an outcome with its expectation."""
    pairs = {
        "rows": (outcome.rows, expected.rows),
        "quarantined": (outcome.quarantined, expected.quarantined),
        "late": (outcome.late, expected.late),
        **{tag: (outcome.side_outputs.get(tag), count) for tag, count in expected.side_outputs.items()},
        **{name: (outcome.measures.get(name), value) for name, value in expected.measures.items()},
    }
    differences = [
        f"{name}: got {_shown(actual)}, expected {_shown(needed)}" for name, (actual, needed) in pairs.items() if actual != needed
    ]
    for sink, rows in expected.sinks.items():
        differences.extend(f"{sink}: {line}" for line in _row_differences(outcome.sinks.get(sink, Counter()), rows))
    if expected.exact is not None and outcome.counted is not None:
        differences.extend(_row_differences(outcome.counted, expected.exact))
    if expected.exact is not None or expected.sinks:
        return Verdict("all rows and side outputs match the expected results computed from the recorded input", tuple(differences))
    return Verdict(f"{', '.join(pairs)} match the expected results computed without Spark", tuple(differences))


def balance(outcome: Outcome, *, changes_row_counts: bool, repeats: str | None = None, bad_share: float = BAD_SHARE) -> Verdict:
    """Compares input and output counts if there is no expectation.

    Args:
        outcome: of the run.
        changes_row_counts: whether the app has blocks that make fewer rows of many, or later ones.
        repeats: what of the job may write a record several times; None: nothing.
        bad_share: share of the input above which quarantined records are a fault.
    """
    faults = tuple(_lost(outcome, bad_share))
    if faults:
        return Verdict(f"rows in the output, and at most {bad_share:.2%} of the records quarantined", faults)
    if repeats is not None:
        return Verdict(f"{repeats} may write a record several times; add `expect` to the spec", compared=False)
    if outcome.unmatched or outcome.rows > outcome.rows_in:
        return Verdict("a join changes row counts; add `expect` to the spec", compared=False)
    parts = {
        "out": outcome.rows,
        "quarantined": outcome.quarantined,
        "late": outcome.late,
        "filtered": outcome.filtered,
        **{tag: count for tag, count in sorted(outcome.side_outputs.items()) if count},
    }
    out, words = sum(parts.values()), " + ".join(f"{count:,} {name}" for name, count in parts.items())
    if changes_row_counts and outcome.rows and out < outcome.rows_in:
        return Verdict(
            f"{words} of {outcome.rows_in:,} rows; an app with state changes row counts; add `expect` to the spec", compared=False
        )
    hint = "a job that aggregates or multiplies rows needs an `expect`"
    differences = () if out == outcome.rows_in else (f"rows: {words} = {out:,}, but {outcome.rows_in:,} rows were read; {hint}",)
    return Verdict(f"rows in = {' + '.join(parts)}", differences)


def _lost(outcome: Outcome, bad_share: float) -> Iterable[str]:
    """What a user would not call right although the counts add up."""
    if outcome.rows_in and not outcome.rows + outcome.unread + sum(outcome.side_outputs.values()):
        yield f"no row came out of {outcome.rows_in:,} records; if the job is right, add `expect` to the spec"
    if outcome.quarantined > bad_share * outcome.rows_in:
        share = f"{outcome.quarantined / outcome.rows_in:.1%}" if outcome.rows_in else "more than there are"
        hint = "if they are meant to be, set spec.quarantine.share, or add `expect` to the spec"
        yield f"{outcome.quarantined:,} of {outcome.rows_in:,} records are quarantined, {share}; {hint}"


def canonical(row: Mapping[str, Any]) -> str:
    """A row in the form in which rows are compared."""
    return json.dumps(row, sort_keys=True)


def _row_differences(actual: Counter[str], needed: Counter[str]) -> Iterable[str]:
    missing, unexpected = needed - actual, actual - needed
    for title, rows in (("missing", missing), ("unexpected", unexpected)):
        if rows:
            yield f"{rows.total():,} {title} rows, for example:"
            yield from (f"    {count} x {row}" for row, count in sorted(rows.items())[:_SHOWN])


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
