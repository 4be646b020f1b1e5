"""The examples of the pages on blocks, as Spark reads them: each field and each expression that they name is there.

Only declared, not run: what the blocks do has tests of its own. So no broker and no database is asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from penstock.jobs import spec
from penstock.jobs.blocks.lookups.table import LookupTable, column_type
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.job import Job
from penstock.jobs.stream.streams import Stream
from penstock.scripts.layout import ROOT
from tests.docs.test_documents import _blocks

FOLDER = ROOT / "docs/blocks"
STREAMS = ("clicks", "payments", "users", "rates")
CONNECTIONS = {"credit-service": "http://127.0.0.1:9", "on-call": "http://127.0.0.1:9", "bank": "postgresql://127.0.0.1:9/bank"}


class _DeclaredJob(Job):
    """A job whose tables have columns of text, for there is no database to tell their types."""

    def table(self, name: str) -> LookupTable:
        table = self.spec.spec.tables[name]
        key, columns = (
            tuple((column, column_type("text", -1, "text")) for column in named) for named in (table.postgres.key, table.postgres.columns)
        )
        return LookupTable(name, table, CONNECTIONS[table.postgres.connection], key, columns)


def _job(session: SparkSession, page: Path, folder: Path) -> Job:
    """A job with the sources of the first page, and whatever else the page's own specs have."""
    result: dict[str, Any] = {"app": "app", "parallelism": 2, "executor": {"slots": 2, "memory": "2g"}, "sinks": {}}
    for text in _blocks(page, "yaml"):
        for name, part in yaml.safe_load(text).items():
            result[name] = {**result.get(name, {}), **part}
    (sources,) = _blocks(FOLDER / "README.md", "yaml")
    document = {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "examples"},
        "spec": result | yaml.safe_load(sources),
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    offsets = {name: {name: {0: 0}} for name in STREAMS}
    return _DeclaredJob(spec.load(path).job, session, KafkaAccess("127.0.0.1:9"), offsets, CONNECTIONS)


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: str(page.stem))
def test_spark_finds_all_that_an_example_names(session: SparkSession, page: Path, tmp_path: Path) -> None:
    streams = _blocks(FOLDER / "README.md", "python")[-1]
    # As a module of its own, so that Spark's workers could be sent what it defines.
    given: dict[str, Any] = {"__name__": "__main__", "job": _job(session, page, tmp_path)}
    exec(compile(streams, f"{page.name}, its streams", "exec"), given)
    # What a page has imported once holds for the rest of it.
    names: dict[str, Any] = {}
    for example in [text for text in _blocks(page, "python") if text != streams]:
        names = {name: value for name, value in names.items() if not isinstance(value, Stream)} | given
        exec(compile(example, page.name, "exec"), names)
        made = {name: value for name, value in names.items() if name not in given and isinstance(value, Stream)}
        assert made or "job.write" in example, f"no stream comes of this:\n{example}"
        for name, stream in made.items():
            assert stream.frame.isStreaming and stream.fields, f"{name} of {page.name}"
