"""Tables for people, on screens of any width."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.scripts.layout import ROOT
from penstock.scripts.render.screen import PIPE_WIDTH, Screen, screen_of
from penstock.scripts.render.table import UNBROKEN, Column, Styled, facts, table

COLUMNS = (Column("name"), Column("what it is", wraps=True), Column("USD", right=True))
ROWS = (("m7g.xlarge", "a node of four cores and sixteen gibibytes", "1.50"), ("a/very-long/name.that_never:wraps", "short", "1,234.50"))
words = st.text(st.sampled_from("ab-/.[]:é漢"), min_size=1, max_size=12)
sentences = st.lists(words, min_size=1, max_size=8).map(" ".join)


def test_names_are_left_and_numbers_right_without_blanks_at_the_end_of_a_line() -> None:
    assert table(COLUMNS, ROWS, Screen(100)) == [
        "  name                               what it is                                       USD",
        "  m7g.xlarge                         a node of four cores and sixteen gibibytes      1.50",
        "  a/very-long/name.that_never:wraps  short                                       1,234.50",
    ]


def test_on_a_narrow_screen_sentences_wrap_and_names_stay_whole() -> None:
    assert table(COLUMNS, ROWS[:1], Screen(40)) == [
        "  name        what it is             USD",
        "  m7g.xlarge  a node of four cores  1.50",
        "              and sixteen",
        "              gibibytes",
    ]
    assert any("a/very-long/name.that_never:wraps" in line for line in table(COLUMNS, ROWS, Screen(20)))


def test_numbers_wrap_only_where_the_table_does_not_fit_otherwise() -> None:
    rows = [("a", "b", f"1.00{UNBROKEN}to 2.00")]
    assert table(COLUMNS, rows, Screen(40))[1].endswith("1.00 to 2.00")
    narrow = table(COLUMNS, rows, Screen(24))
    assert [line[-7:] for line in narrow[-2:]] == ["1.00 to", "   2.00"]


def test_a_total_stands_below_a_rule() -> None:
    lines = table(COLUMNS, ROWS[:1], Screen(80), total=("total", "", "1.50"))
    assert [set(line.strip()) == {"-"} for line in lines] == [False, True, False, True, False]
    assert table(COLUMNS, [], Screen(80), total=("total", "", "0.00"))[-1].split() == ["total", "0.00"]


def test_what_a_cell_says_is_text_and_no_markup() -> None:
    lines = table((Column("[bold]x[/]"), Column("y", wraps=True)), [("[red]name", ":rocket: [/] http://x")], Screen(80))
    assert lines == ["  [bold]x[/]  y", "  [red]name   :rocket: [/] http://x"]


def test_colours_are_for_screens_that_have_them() -> None:
    rows = [(Styled("name", "red"), "b", "1")]
    assert "\x1b" not in "".join(table(COLUMNS, rows, Screen(80)))
    assert "\x1b[31mname" in "".join(table(COLUMNS, rows, Screen(80, colour=True)))
    assert "\x1b[1m" in table(COLUMNS, rows, Screen(80, colour=True))[0]


def test_facts_wrap_within_their_column() -> None:
    assert facts([("load", "one two three four"), ("", "five")], Screen(20)) == ["  load  one two", "        three four", "        five"]


def test_a_fact_with_a_long_word_leaves_the_others_within_the_screen() -> None:
    shown = facts([("a", "one two three"), ("name", "x" * 30), ("b", "four five six")], Screen(18))
    assert shown == ["  a     one two", "        three", f"  name  {'x' * 30}", "  b     four five", "        six"]


def test_a_file_gets_a_width_of_its_own_and_no_colours() -> None:
    assert screen_of(io.StringIO(), {"COLUMNS": "30"}) == Screen(PIPE_WIDTH, colour=False)


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_its_own_width_and_colours_that_the_user_can_refuse(variables: dict[str, str], coloured: bool) -> None:
    keeper, terminal = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    command = [sys.executable, "-P", "-m", "penstock.scripts", "catalog", "list"]
    variables = {**environment, "TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": str(ROOT), **variables}
    assert subprocess.run(command, stdout=terminal, env=variables, check=False, timeout=60).returncode == 0
    os.close(terminal)
    shown = os.read(keeper, 100_000).decode()
    os.close(keeper)
    assert ("\x1b[" in shown) == coloured
    assert max(len(re.sub(r"\x1b\[\d*m", "", line).rstrip()) for line in shown.splitlines()) <= 80


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(words, sentences, words), min_size=1, max_size=5), st.integers(1, 120), st.booleans())
def test_no_word_is_ever_lost_or_broken(rows: list[tuple[str, str, str]], width: int, ruled: bool) -> None:
    lines = table(COLUMNS, rows, Screen(width), total=rows[0] if ruled else None)
    shown = [word for line in lines for word in line.split()]
    for word in {word for row in rows for cell in row for word in cell.split()}:
        assert word in shown, (word, lines)
    assert all(line == line.rstrip() for line in lines)


@given(st.integers(20, 120))
@settings(deadline=None, max_examples=20)
def test_a_table_is_no_wider_than_its_screen_where_its_words_allow(width: int) -> None:
    columns = tuple(Column(heading, wraps=True, right=at == 1) for at, heading in enumerate(("a", "b", "c")))
    rows = [("aaa bbb ccc ddd", "1 to 2 and 3 to 4", "x y z " * 10), ("aaaa", "1", "y")]
    assert max(map(len, table(columns, rows, Screen(width)))) <= width


def test_rows_of_a_table_start_at_the_same_columns() -> None:
    lines = table(COLUMNS, ROWS, Screen(100))
    starts = [line.index(row[1]) for line, row in zip(lines[1:], ROWS, strict=True)]
    assert all(one == other for one, other in pairwise([*starts, lines[0].index("what")]))
