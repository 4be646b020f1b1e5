"""When a watermark may follow the clock, and when that requires further micro-batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.errors import Contradiction
from penstock.jobs.spec import load

EVENT = {"field": "at"}
PROCESSING = {"kind": "processing"}


def _written(folder: Path, *times: dict[str, Any], **spec: Any) -> Path:
    sources = {f"s{n}": {"kafka": {"topic": f"t{n}", "startingOffsets": "earliest"}, "time": time} for n, time in enumerate(times)}
    body = {"app": "penstock.jobs.apps.user_credit", "parallelism": 1, "executor": {"memory": "2g"}, "sources": sources, **spec}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "j"}, "spec": body}))
    return path


def test_a_clock_that_would_never_run_is_reported_with_its_line(tmp_path: Path) -> None:
    path = _written(tmp_path, EVENT, EVENT | {"idleness": "1m"}, PROCESSING, whenIdle="clock")
    with pytest.raises(Contradiction) as refused:
        load(path)
    assert "idleness for every source with time" in refused.value.render()
    assert "spec.sources.s0.time" in refused.value.render()


@pytest.mark.parametrize(
    ("times", "more", "wanted"),
    [
        pytest.param([EVENT], {}, False, id="event time"),
        pytest.param([EVENT, PROCESSING], {}, True, id="processing time"),
        pytest.param([EVENT | {"idleness": "1m"}], {"whenIdle": "clock"}, True, id="the clock when idle"),
        pytest.param([PROCESSING], {"trigger": "availableNow"}, False, id="a bounded run ends with its input"),
    ],
)
def test_micro_batches_go_on_only_where_the_watermark_follows_the_clock(
    tmp_path: Path, times: list[dict[str, Any]], more: dict[str, Any], wanted: bool
) -> None:
    assert load(_written(tmp_path, *times, **more)).job.spec.follows_clock is wanted
