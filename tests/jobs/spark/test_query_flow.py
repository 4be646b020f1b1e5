"""What `penstock show` shows of an app's queries."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.jobs.driver.check import flows
from penstock.jobs.driver.query_flow import QueryFlow
from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT

APP = """\
from penstock import Job, Side, aggregate, interval_join, tumbling

def build(job: Job) -> None:
    clicks = job.source("clicks", "user STRING NOT NULL, page STRING, at STRING")
    views = job.source("views", "user STRING NOT NULL, page STRING, at STRING")
    pairs = interval_join(Side("c", clicks, "user"), Side("v", views, "user"), lower="-1m", upper="1m")
    counts = aggregate(pairs.select(page="c.page"), tumbling("1m"), keys=["page"], n="count(*)")
    job.write(counts, "counts")
    job.write(clicks.filter("page = '/buy'").select(user="user"), "buyers")
    job.side_output("errors")
"""
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: pages}
spec:
  app: shown_pages
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources:
    clicks: {kafka: {topic: clicks}, time: {field: at, outOfOrderness: 5s}}
    views: {kafka: {topics: [views-a, views-b]}, time: {field: at, outOfOrderness: 5s}}
  sinks:
    counts: {files: {path: counts}}
    buyers: {kafka: {topic: buyers}}
    errors: {kafka: {topic: errors}}
"""


def _operators(query: QueryFlow) -> list[tuple[int, str, list[str], int | None]]:
    return [(one.id, one.name, [key.name for key in one.keys], one.feeds) for one in query.operators]


def _sources(query: QueryFlow) -> list[tuple[str, tuple[str, ...], int | None]]:
    return [(one.source.name, one.source.places, one.feeds) for one in query.sources]


def test_each_query_has_its_sources_operators_and_sinks_and_how_rows_flow_between_them(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "shown_pages.py").write_text(APP, encoding="utf-8")
    (tmp_path / "pages.yaml").write_text(SPEC, encoding="utf-8")
    counts, buyers = flows(load(tmp_path / "pages.yaml"), [], session, tmp_path)
    assert (counts.name, buyers.name) == ("", "buyers")
    assert _operators(counts) == [(0, "Aggregate", ["page", "window"], None), (1, "Join", ["_l_key", "_r_key"], 0)]
    assert _sources(counts) == [("clicks", ("clicks",), 1), ("views", ("views-a", "views-b"), 1)]
    assert [sink.name for sink in counts.writes] == ["counts"]
    assert (_operators(buyers), _sources(buyers)) == ([], [("clicks", ("clicks",), None)])
    assert [(sink.name, sink.said) for sink in buyers.writes] == [("buyers", "topic buyers")]
    assert {sink.name for query in (counts, buyers) for sink in query.side_outputs} == {"errors"}


def test_an_aggregate_over_a_keyed_function_takes_its_rows(session: SparkSession, tmp_path: Path) -> None:
    (query,) = flows(load(ROOT / "jobs/specs/ad_impressions.yaml"), [], session, tmp_path)
    assert [(one.name, one.feeds) for one in query.operators] == [("Aggregate", None), ("TransformWithStateInPySpark", 0)]
    assert [(one.source.name, one.feeds) for one in query.sources] == [("events", 1), ("campaigns", 1)]
    assert query.output_mode == "update"
