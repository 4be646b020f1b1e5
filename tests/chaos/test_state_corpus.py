"""The corpus of changes on real checkpoints: what the comparison of state says, what Spark does, and the rows that come out.

Each change has three files of records. The query before it reads the first one; the query after it goes on with a copy of that checkpoint
and reads the others, and it does the same with a checkpoint of its own. Where the comparison says that the state fits, both must give the
same rows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.jobs.stream.analyzed_plan import stateful_operators
from penstock.scripts import layout
from penstock.scripts.checking.session import end
from tests.jobs.spark.state_corpus import DIFFERS, FITS, RIGHT, Query

# Spark's own, for checkpoints on this machine.
_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
_SCHEMA = "at timestamp, user string, shop string, n long, m long, x double"
_START, _HOUR = 1_700_000_000, 3_600
_FILES_OF_EACH = 3
_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z_.]+)\]")


def _records(number: int) -> list[dict[str, object]]:
    """Of a file; the last one is an hour later, so that all windows of the others close. No sum, least or greatest of one column is that
    of another one, nor is one of a file that of all.
    """
    rows = range(6 * number, 6 * number + 6)
    return [
        {
            "at": _START + (_HOUR if number == _FILES_OF_EACH - 1 else number),
            "user": f"user {row % 3}",
            "shop": f"shop {row % 2}",
            "n": row * 37 % 101,
            "m": row * 211 % 997,
            "x": float(number),
        }
        for row in rows
    ]


# Spark's error classes for state that does not fit.
_REFUSALS = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
}
# What Spark goes on with, of what does not fit; it refuses the others. Rows may be right by chance: what the state has is not what the
# changed operator would have kept.
SPARK = {
    "a filter after a join, of one side": "wrong rows",
    "a filter after an aggregation, of a key": "wrong rows",
    "a join's condition on one side": "wrong rows",
    "a key of deduplication": "wrong rows",
    "a key of the same type": "wrong rows",
    "a larger window": "wrong rows",
    "a session's gap": "right rows",
    "a sliding window": "wrong rows",
    "aggregates swapped": "wrong rows",
    "an aggregate of another column": "wrong rows",
    "an aggregate's filter": "wrong rows",
    "an outer join": "right rows",
    "another aggregate": "wrong rows",
    "another column of a join": "wrong rows",
    "another slide": "wrong rows",
    "functions in Python swapped": "wrong rows",
    "keys swapped": "wrong rows",
    "the first of two aggregations": "wrong rows",
    "the key of a function of groups": "wrong rows",
}


class Went(NamedTuple):
    """What a query did with a checkpoint: the rows that it wrote, or Spark's error class."""

    rows: tuple[str, ...] | None
    refused: str = ""


@dataclass
class Corpus:
    """The queries of the corpus, each of which has a checkpoint after the first file.

    Args:
        session: Spark's.
        folder: for the records and the checkpoints.
        queries: all of them.
    """

    session: SparkSession
    folder: Path
    queries: list[Query]
    _numbers: Iterator[int] = field(default_factory=count)
    _begun: dict[Query, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "records").mkdir()
        self._feed(0)
        for query in self.queries:
            self._begun[query] = self._new()
            began = self._run(query, self._begun[query])
            assert began.rows is not None, began
        for number in range(1, _FILES_OF_EACH):
            self._feed(number)

    def gone_on(self, query: Query, before: Query) -> Went:
        """A query goes on with a copy of another one's checkpoint."""
        return self._run(query, Path(shutil.copytree(self._begun[before], self._new())))

    def _feed(self, number: int) -> None:
        file = self.folder / "records" / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, _records(number))), encoding="utf-8")
        # By which Spark orders them.
        os.utime(file, (_START + number, _START + number))

    def _new(self) -> Path:
        return self.folder / f"checkpoint-{next(self._numbers)}"

    def _run(self, query: Query, checkpoint: Path) -> Went:
        """Reads what there is."""
        rows: list[str] = []

        def collect(batch: DataFrame, _: int) -> None:
            rows.extend(row.json for row in batch.select(F.to_json(F.struct("*")).alias("json")).collect())

        frame = query(self._records())
        writer = frame.writeStream.foreachBatch(collect).outputMode(_mode(frame)).trigger(availableNow=True)
        try:
            writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
        except PySparkException as error:
            classes = [one for one in _ERROR_CLASS.findall(str(error)) if one != "STREAM_FAILED"]
            return Went(None, classes[0] if classes else str(error))
        return Went(tuple(sorted(rows)))

    def _records(self) -> DataFrame:
        read = self.session.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.folder / "records"))
        return read.withWatermark("at", "9 seconds")


def _mode(frame: DataFrame) -> str:
    """Aggregations without a window never close, so they write what has changed."""
    operators = [operator.name for operator in stateful_operators(frame)]
    windowed = any(field.name in ("window", "session_window") or "at" in field.name for field in frame.schema)
    return "update" if (operators == ["Aggregate"] and not windowed) or "InPandas" in str(operators) else "append"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = tmp_path_factory.mktemp("corpus")
    conf = {
        **spark_session.state_conf(State()),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.driver.memory": "1500m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.checkpointFileManagerClass": _FILES,
        "spark.ui.enabled": "false",
    }
    session = spark_session.build("corpus", "local[2]", conf)
    session.sparkContext.setLogLevel("OFF")
    changes = [*FITS.values(), *(change[:2] for change in DIFFERS.values())]
    yield Corpus(session, folder, list(dict.fromkeys(chain(*changes, RIGHT.values()))))
    # With its JVM, whose variables are those of now: the tests of a job that come after it need the emulated AWS's.
    end(session)


def _right(corpus: Corpus, name: str, query: Query) -> Went:
    """What the query after a change writes if the state is its own."""
    right = RIGHT.get(name, query)
    return corpus.gone_on(right, right)


@pytest.mark.parametrize("change", FITS)
def test_what_fits_goes_on_with_the_right_rows(corpus: Corpus, change: str) -> None:
    before, after = FITS[change]
    went = corpus.gone_on(after, before)
    assert went.rows is not None, went
    assert went == _right(corpus, change, after)


@pytest.mark.parametrize("change", DIFFERS)
def test_what_does_not_fit_is_refused_by_spark_or_gives_wrong_rows(corpus: Corpus, change: str) -> None:
    before, after, _ = DIFFERS[change]
    went, right = corpus.gone_on(after, before), _right(corpus, change, after)
    assert right.rows is not None, right
    did = f"refuses: {went.refused}" if went.rows is None else "right rows" if went == right else "wrong rows"
    assert did == SPARK.get(change, did if went.refused in _REFUSALS else "refuses")
