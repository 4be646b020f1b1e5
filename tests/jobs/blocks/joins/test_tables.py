"""Files that are read for every micro-batch: their content, and errors of unreadable ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from penstock.jobs.blocks.joins import csv_file, json_lines_file, tables
from penstock.jobs.errors import TableFileUnread

URI = "s3://reference/tables/names"


def _answer(monkeypatch: pytest.MonkeyPatch, answer: bytes | ClientError | BotoCoreError) -> None:
    class S3:
        def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
            assert (Bucket, Key) == ("reference", "tables/names")
            if isinstance(answer, Exception):
                raise answer
            return {"Body": io.BytesIO(answer)}

    monkeypatch.setattr(tables, "shared_client", S3)


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\u0085"])
def test_a_line_of_json_ends_where_a_files_line_ends(monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    _answer(monkeypatch, f'\ufeff{{"k": "a{sign}b"}}\r\n\n{{"k": "c"}}'.encode())
    assert list(json_lines_file(URI)()) == [{"k": f"a{sign}b"}, {"k": "c"}]


@pytest.mark.parametrize("sign", ["\u2028", "\u0085", "\n"])
def test_a_field_of_csv_may_have_any_sign(monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    _answer(monkeypatch, f'k,n\r\n"a{sign}b",\r\nc,1\r\n'.encode())
    assert list(csv_file(URI)()) == [{"k": f"a{sign}b", "n": None}, {"k": "c", "n": "1"}]


@pytest.mark.parametrize(
    ("reader", "answer", "given", "need"),
    [
        (json_lines_file, ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject"), "NoSuchKey", "an existing, readable file"),
        (csv_file, ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject"), "AccessDenied", "an existing, readable file"),
        (json_lines_file, EndpointConnectionError(endpoint_url="u"), 'Could not connect to the endpoint URL: "u"', "a response from S3"),
        (csv_file, b"k\n\xff\n", "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte", "UTF-8 text"),
        (json_lines_file, b'{"k": 1}\n\n{"k"\n', "line 3: Expecting ':' delimiter: line 2 column 1 (char 5)", "one JSON object per line"),
        (json_lines_file, b'[{"k": 1}]', 'line 1: [{"k": 1}]', "one JSON object per line"),
        (csv_file, b'k\n"' + b"a" * 140_000, "field larger than field limit (131072)", "CSV with a header row"),
    ],
)
def test_an_unreadable_file_is_reported_with_its_uri(
    monkeypatch: pytest.MonkeyPatch,
    reader: Callable[[str], Callable[[], tables.Rows]],
    answer: bytes | ClientError | BotoCoreError,
    given: str,
    need: str,
) -> None:
    _answer(monkeypatch, answer)
    with pytest.raises(TableFileUnread) as raised:
        list(reader(URI)())
    assert (raised.value.path, raised.value.given, raised.value.need) == (URI, given, need)
