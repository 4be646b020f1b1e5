"""The options of ``penstock savepoint start-from`` that say where a job reads on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from penstock.scripts.savepoints.offsets_argument import add_offsets_arguments


def _parsed(*words: str) -> object:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_offsets_arguments(parser)
    return parser.parse_args(words).offsets


def test_they_are_a_time_or_the_offsets_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text('{"clicks": {"0": 5, "1": -1}}')
    assert _parsed() is None
    assert _parsed("--offsets", str(file)) == {"clicks": {0: 5, 1: -1}}
    assert _parsed("--offsets-at-time", "savepoint") == "savepointTime"
    assert _parsed("--offsets-at-time", "2023-03-15T18:50:00+05:30") == _parsed("--offsets-at-time", "1678886400000") == 1_678_886_400_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"clicks": {"0": }}', "line 1: Expecting value"),
        (b"\xff", "UTF-8 text"),
        (b"[]", "Input should be a valid dictionary"),
        (b"{}", "there is no topic"),
        (b'{"clicks": {"0": -3}}', "clicks.0: Input should be greater than or equal to -2"),
        (b'{"clicks": {"first": 3}}', "clicks.first"),
    ],
)
def test_a_file_with_something_else_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_bytes(content)
    with pytest.raises(argparse.ArgumentError, match=said):
        _parsed("--offsets", str(file))


@pytest.mark.parametrize("text", ["noon", "2023-03-15T18:50:00", "-1", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="a time with its offset"):
        _parsed(f"--offsets-at-time={text}")
