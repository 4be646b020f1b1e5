"""Skew: the keys of a stream with the most rows in a micro-batch, counted while the rows pass.

A stage is as slow as its slowest task, and all rows of a key go to one task: the share of the hottest key limits what a keyed step can
gain from more slots. Rows by partition of the sources are counted too (`penstock.jobs.driver.gauges`). The remedy for aggregates is
`penstock.jobs.blocks.windows.salted`.

Cost: one sketch per task, of twice `TRACKED` keys at most. Counts are exact while a micro-batch has no more than `TRACKED` keys,
otherwise off by less than a thousandth of its rows, so hot keys are always found.

Source: Apache DataSketches, "Frequent Items", on which Spark's approx_top_k is built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import functions as F

from penstock.jobs.stream.event_time.engine import Engine
from penstock.jobs.stream.streams import Stream

PREFIX = "penstock_keys_"
# Keys reported for each micro-batch, and keys that a sketch tracks.
TOP, TRACKED = 5, 4_096
# Gauges, each followed by the observation's name.
KEYED_ROWS, HOTTEST_KEY_ROWS = "penstock.keyedRows", "penstock.hottestKeyRows"


class HotKey(BaseModel):
    """A key and its number of rows in a micro-batch; the key None: rows whose key is null."""

    model_config = ConfigDict(frozen=True)

    key: str | None = None
    rows: int = Field(ge=0)


class Keys(BaseModel):
    """The keys of a micro-batch.

    Args:
        rows: of all keys.
        hottest: the keys with the most rows, in descending order, `TOP` at most.
    """

    model_config = ConfigDict(frozen=True)

    rows: int = Field(ge=0)
    hottest: list[HotKey]


def observe_keys(stream: Stream, name: str, *keys: str) -> Stream:
    """Counts the data rows by key; the rows themselves are unchanged.

    Args:
        stream: the rows, preferably upstream of the keyed step.
        name: of the observation, unique within a job.
        keys: names of fields. Several are reported as JSON.

    Returns:
        The stream. The driver's ``batch`` event has ``keys`` by name, and there are gauges of all rows and of the hottest key's.

    Raises:
        ValueError: no key, or a key that is not a field.
    """
    unknown = [key for key in keys if key not in stream.fields]
    if unknown or not keys:
        raise ValueError(f"unknown field {', '.join(unknown) or '(none given)'} to count by; the stream has {', '.join(stream.fields)}")
    whole = F.to_json(F.struct(*keys), {"ignoreNullFields": "false"})
    text = whole if len(keys) > 1 else F.col(keys[0]).cast("string")
    # A sketch counts no nulls.
    marked = stream.frame.withColumn("_key", F.struct(text.alias("key")))
    counted = F.count(F.lit(1)).alias("rows")
    hottest = F.expr(f"to_json(approx_top_k(to_json(_key), {TOP}, {TRACKED}))").alias("hottest")
    return replace(stream, frame=marked.observe(PREFIX + name, counted, hottest).drop("_key"))


def observed_keys(engine: Engine) -> dict[str, Keys]:
    """Name of an observation -> the counts of this micro-batch, once its rows have been computed."""
    names = [name for name in engine.observing() if name.startswith(PREFIX)]
    return {name.removeprefix(PREFIX): keys_of(engine.observed(name)) for name in names}


def keys_of(observed: Mapping[str, Any]) -> Keys:
    """The counts in the metrics of one observation; empty if no row passed."""
    hottest = json.loads(observed.get("hottest") or "[]")
    items = [HotKey(key=json.loads(one["item"]).get("key"), rows=one["count"]) for one in hottest]
    return Keys(rows=int(observed.get("rows") or 0), hottest=sorted(items, key=lambda one: -one.rows)[:TOP])


def gauges(keys: Mapping[str, Keys]) -> dict[str, int]:
    """Name of a gauge -> value."""
    rows = {f"{KEYED_ROWS}.{name}": counts.rows for name, counts in keys.items()}
    return rows | {f"{HOTTEST_KEY_ROWS}.{name}": max((one.rows for one in counts.hottest), default=0) for name, counts in keys.items()}
