"""`penstock up` as a user runs it, with jobs outside of the repo. One whose result is right is that of docs/jobs.md, which the tests of the
documents run.
"""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.emulated.clicks import EXPECT, LIMIT_S, SPEC, VISITS, VISITS_APP, VISITS_EXPECT, until, up, wait_until_gone


@pytest.mark.chaos
def test_a_bounded_run_reads_what_is_there_and_ends(spec: Path, temporary: Path) -> None:
    text = SPEC.replace("trigger: 1s", "trigger: availableNow\n  bounded: true").replace("partitions: 2}", "startingOffsets: earliest}")
    spec.write_text(text, encoding="utf-8")
    running = up(spec, temporary)
    _, result = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, result
    assert "correct: rows in = out + quarantined + late + filtered" in result
    assert "4 records (clicks 4)" in result
    assert "end of input" in result


def test_a_wrong_result_is_a_failure_that_shows_the_rows_after_the_other_jobs_have_run(spec: Path, temporary: Path) -> None:
    (spec.parent / "clicks_expect.py").write_text(EXPECT, encoding="utf-8")
    spec.write_text(SPEC + "    expect: clicks_expect:expect\n", encoding="utf-8")
    other = spec.with_name("visits.yaml")
    for name, text in (("visits_app.py", VISITS_APP), ("visits_expect.py", VISITS_EXPECT), (other.name, VISITS)):
        other.with_name(name).write_text(text, encoding="utf-8")
    running = up(spec, temporary, str(other))
    out, result = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 1, result
    table = [line.split(maxsplit=5) for line in out[out.rindex("  job ") :].splitlines()]
    assert table == [
        ["job", "in", "out", "quarantined", "late", "verdict"],
        ["clicks", "4", "2", "1", "0", "WRONG"],
        ["visits", "4", table[2][2], "1", "0", "correct"],
    ]
    assert "clicks: RUN-016; the errors follow after the other jobs" in result
    # Its windows of processing time have closed before it is compared.
    assert result.index("correct: rows, quarantined, late, views match") < result.index("error[RUN-016]")
    assert "rows: got 2, expected 3" in result
    assert '2 x {"page": "/gone", "user": "zoe"}' in result
    assert '1 x {"page": "/cart", "user": "bob"}' in result
    assert [folder.name.startswith("penstock-logs-") for folder in temporary.iterdir()] == [True], (
        "the logs of a failure stay, all else goes"
    )
    wait_until_gone(temporary)


def test_kept_up_it_says_how_to_look_and_an_interrupt_takes_all_of_it_away(spec: Path, temporary: Path) -> None:
    running = up(spec, temporary, "--keep")
    bucket = until(running, r"^  bucket ").split("curl ")[1].strip().strip("'")
    listing = subprocess.run(["curl", "-sf", bucket], capture_output=True, text=True, timeout=30, check=True).stdout
    assert "<Key>clicks/dt=2025-04-05/clicks-" in listing
    java = until(running, r"^  topic ").split("  topic ")[1].strip().replace("NAME", "clicks-errors")
    consumed = subprocess.run(["bash", "-c", f"{java} --max-messages 1"], capture_output=True, text=True, timeout=60, check=False)
    assert '"value":"not JSON"' in consumed.stdout
    # Kafka's hint at its newer protocol and the count, instead of 150 lines of settings.
    assert len(consumed.stderr.splitlines()) <= 2
    assert consumed.stderr.endswith("Processed a total of 1 messages\n")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 130
    assert list(temporary.iterdir()) == []
    wait_until_gone(temporary)


@pytest.mark.chaos
def test_a_run_that_puts_all_records_into_the_quarantine_is_wrong_says_why_and_is_kept_to_look_at(spec: Path, temporary: Path) -> None:
    lines = [f'{{"user": "ann", "at": {1_743_854_400_000 + second}, "page": "/"}}' for second in range(20)]
    (spec.parent / "clicks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    running = up(spec, temporary, "--keep")
    assert running.stderr is not None
    result = ""
    while "  stop " not in (line := running.stderr.readline()):
        assert line, result
        result += line
    assert "20 x at is not ISO-8601 with an offset, for example clicks-" in result, result
    assert "WRONG: rows in the output, and at most 30.00% of the records quarantined" in result
    assert "no row came out of 20 records" in result
    assert "20 of 20 records are quarantined, 100.0%" in result
    java = re.search(r"^  topic +(java .*)NAME$", result, re.MULTILINE)
    assert java is not None, result
    command = f"{java[1]}clicks-errors --max-messages 20"
    consumed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False).stdout
    assert consumed.count("at is not ISO-8601 with an offset") == 20
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=120)
    assert running.returncode == 1, rest
    wait_until_gone(temporary)
