"""The oracles of the jobs that read lines of text, for a few readable lines."""

from __future__ import annotations

from penstock.jobs.local import error_logs, keyword_lines, word_count
from penstock.jobs.local.recording import Recorded, Recording
from tests.jobs.local.recordings import recorded, rows


def test_words_are_counted_whatever_their_case_and_what_stands_between_them() -> None:
    expected = word_count.expect(recorded("lines", [b"Gate x_1, gate!", b"", b"it's -- 2025", b"\xff gate", b"GATE"]))
    assert {row["word"]: row["count"] for row in rows(expected)} == {"gate": 3, "x_1": 1, "it": 1, "s": 1, "2025": 1}
    assert expected.quarantined == 1
    # A count replaces the earlier ones.
    assert expected.last_by == ("word",)


def test_the_lines_of_word_count_have_all_that_can_go_wrong_in_them() -> None:
    lines = [record.value or b"" for record in word_count.lines()]
    assert len(lines) == word_count.LINES
    assert sum(line.startswith(b"\xff\xfe") for line in lines) == word_count.expect(recorded("lines", lines)).quarantined > 0
    assert b"" in lines


def test_what_a_socket_sends_is_one_line_each() -> None:
    assert len(word_count.socket_lines()) == word_count.SOCKET_LINES
    assert not any("\n" in line for line in word_count.socket_lines())


def test_a_line_has_the_keyword_as_it_is_written() -> None:
    lines = [b"1 a keyword", b"2 Keyword", b"3 key word", b"4 keywords", b"4 keywords"]
    files = [Recorded(number % 3, number // 3, None, line, flush=False) for number, line in enumerate(lines)]
    expected = keyword_lines.expect(Recording({keyword_lines.PATH: files}, {}, [], {}))
    assert [row["line"] for row in rows(expected, "line")] == ["1 a keyword", "4 keywords", "4 keywords"]


def test_an_error_is_one_in_capitals_or_not_and_capitals_are_those_of_unicode() -> None:
    logs = [b"info all well", "Error in straße".encode(), b"warn no error yet", b"error cut off \xc3"]
    expected = error_logs.expect(recorded(error_logs.TOPIC, logs))
    assert [row["line"] for row in rows(expected, "line")] == ["ERROR IN STRASSE", "WARN NO ERROR YET"]
    assert expected.quarantined == 1


def test_some_lines_of_the_log_are_cut_off_and_some_have_errors() -> None:
    logs = [record.value or b"" for record in error_logs.logs()]
    expected = error_logs.expect(recorded(error_logs.TOPIC, logs))
    assert len(logs) == error_logs.LINES
    assert 0 < expected.quarantined < 20
    assert 0 < expected.rows < error_logs.LINES / 2
