from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from penstock.scripts.preview.collector import Collector


def test_each_array_of_a_sink_is_taken_once_and_kept_in_order(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        url = collector.url("before", "out")
        for key, body in (("1", '[{"n": 1}, {"n": 2}]'), ("2", '[{"n": 0}]'), ("1", '[{"n": 1}, {"n": 2}]'), ("3", "[no JSON]")):
            assert httpx.post(url, content=body, headers={"Idempotency-Key": key}).status_code == 204
        assert list(collector.rows("before", "out")) == [{"n": 1}, {"n": 2}, {"n": 0}, {"value": "[no JSON]"}]
        assert list(collector.rows("after", "out")) == []


@pytest.mark.parametrize("path", ["/", "/x/before/out", "/../out"])
def test_a_path_that_is_no_sinks_is_refused(tmp_path: Path, path: str) -> None:
    with Collector(tmp_path) as collector:
        host = collector.url("before", "out").split("/")[2]
        assert httpx.post(f"http://{host}{path}", content="[{}]").status_code == 404
        assert not list(tmp_path.iterdir())
