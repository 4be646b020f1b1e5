"""Progress output of a long command."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from penstock.scripts.progress import Steps


def _steps(*, terminal: bool) -> tuple[Steps, io.StringIO]:
    out = io.StringIO()
    return Steps(Console(file=out, force_terminal=terminal, width=60, highlight=False, soft_wrap=True, emoji=False)), out


def test_a_line_has_its_label_in_a_column_of_its_own_and_its_further_lines_below_the_first() -> None:
    steps, out = _steps(terminal=False)
    steps.line("bucket", "one\ntwo")
    steps.line("cut", "")
    assert out.getvalue() == "  bucket      one\n              two\n  cut         \n"


def test_a_label_as_long_as_its_column_or_longer_is_followed_by_a_space() -> None:
    steps, out = _steps(terminal=False)
    steps.line("user-credits", "one\ntwo")
    assert out.getvalue() == "  user-credits one\n              two\n"


def test_a_step_is_printed_when_it_begins_and_with_its_duration_when_it_ends() -> None:
    steps, out = _steps(terminal=False)
    with steps.at("feed", "3 records") as step:
        assert out.getvalue() == "  feed        3 records ...\n"
        step.said = "3 records fed"
    assert re.fullmatch(r"  feed        3 records \.\.\.\n  feed        3 records fed  \(\d+\.\d s\)\n", out.getvalue())


def test_the_time_that_is_shown_is_the_time_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [1000.0]
    monkeypatch.setattr("penstock.scripts.progress.time", SimpleNamespace(monotonic=lambda: now_s[0]))
    steps, out = _steps(terminal=False)
    with steps.at("plan", "12 stacks"):
        now_s[0] += 72.34
        with steps.at("apply", "kafka"):
            now_s[0] += 5.0
    assert re.findall(r"\((.+) s\)", out.getvalue()) == ["5.0", "77.3"]


def test_a_step_without_a_result_keeps_its_first_text() -> None:
    steps, out = _steps(terminal=False)
    with steps.at("feed", "3 records"):
        pass
    assert re.search(r"feed +3 records  \(", out.getvalue())


@pytest.mark.parametrize("terminal", [False, True])
def test_a_failed_step_is_not_printed_as_done(terminal: bool) -> None:
    steps, out = _steps(terminal=terminal)
    with pytest.raises(RuntimeError), steps.at("feed", "3 records"):
        raise RuntimeError
    assert " s)" not in out.getvalue()


def test_without_a_terminal_only_text_is_printed() -> None:
    steps, out = _steps(terminal=False)
    steps.title("job [bold]flights[/bold] :rocket:")
    steps.line("[red]label", "s3a://bucket/[folder]/ 100%\n[/]")
    with steps.at("spark", "starting local[4]"):
        pass
    text = out.getvalue()
    assert "\x1b" not in text and "\r" not in text
    assert "job [bold]flights[/bold] :rocket:" in text
    assert "  [red]label  s3a://bucket/[folder]/ 100%\n" in text
    assert "starting local[4] ..." in text


def test_on_a_terminal_the_current_step_is_shown_and_removed_at_its_end() -> None:
    steps, out = _steps(terminal=True)
    with steps.at("spark", "starting") as step:
        step.said = "reads"
    text = out.getvalue()
    assert "\x1b[?25l" in text and text.rindex("\x1b[?25h") < text.index("reads"), "the cursor is shown again before the line is written"
    assert "spark: starting" in text
    assert "starting ..." not in text


def test_steps_of_several_threads_are_shown_together_and_each_is_removed_at_its_own_end() -> None:
    steps, out = _steps(terminal=True)
    first, second = steps.at("network", "planning"), steps.at("kafka", "planning [all]")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    still = out.getvalue()
    assert "kafka: planning [all]" in still
    assert "\x1b[?25h" not in still, "the display goes on"
    second.__exit__(None, None, None)
    assert out.getvalue().endswith("s)\n")
    assert re.search(r"network +planning  \(.*\n.*kafka +planning \[all\]  \(", out.getvalue(), re.DOTALL)


def test_a_long_line_is_left_whole() -> None:
    steps, out = _steps(terminal=False)
    steps.line("out", "x" * 500)
    assert out.getvalue().count("\n") == 1


def test_lines_go_to_standard_error_so_that_standard_output_stays_clean(capsys: pytest.CaptureFixture[str]) -> None:
    Steps().line("out", "a row")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "  out         a row\n")
