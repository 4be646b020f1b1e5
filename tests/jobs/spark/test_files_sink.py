"""Files for any reader: their sizes and names, and the leftovers of failed attempts."""

from __future__ import annotations

import io
import json
import re
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks import files, part_formats
from penstock.jobs.sinks.errors import ReplayDiffers, StagedPartGone
from penstock.jobs.sinks.files import Files
from penstock.jobs.sinks.part_log import Manifest, PartLog
from penstock.jobs.sinks.parts import PART_BYTES, TOKEN
from penstock.jobs.sinks.publishing import Publisher
from penstock.jobs.sinks.sink import FOREVER_MS, Batch
from penstock.jobs.spec import FileSink
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.stream.streams import TIME
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SMALL: dict[str, Any] = {"roll": {"size": "64k"}, "bucketBy": "none"}


class Killed(Exception):
    """Represents the end of the process at a chosen point."""


@dataclass(frozen=True)
class Sink:
    """The location of a sink in the buckets, and what a reader sees."""

    session: SparkSession
    s3: S3Client
    path: str = field(default_factory=lambda: f"sink-{uuid.uuid4().hex[:8]}")
    now: list[int] = field(default_factory=lambda: [0])

    def files(self, kind: type[Checkpoint] = Checkpoint, **settings: Any) -> Files:
        """A writer of one driver."""
        sink = FileSink.model_validate({"path": self.path, "prefix": "part-", **settings})
        return Files("out", sink, OUTPUT, "0123abcd", kind(f"s3a://{CHECKPOINTS}/{self.path}/1"))

    def held(self, *, format: str = "json", **roll: Any) -> Files:
        """A writer whose files stay open; its clock is the time of the current micro-batch."""
        sink = FileSink.model_validate({"path": self.path, "bucketBy": "none", "format": format, "roll": roll})
        return Files("out", sink, OUTPUT, "0123abcd", Checkpoint(f"s3a://{CHECKPOINTS}/{self.path}/1"), clock=lambda: self.now[0])

    def at(self, files: Files, batch: int, second: int, rows: DataFrame) -> None:
        """Writes a micro-batch of a second."""
        self.now[0] = 1_000 * second
        files.write(rows, Batch(batch, rows.count(), 1_000 * second))

    def chunks(self) -> list[str]:
        """Names of the chunks in the checkpoint."""
        prefix = f"{self.path}/1/penstock/sinks/out/chunks/"
        return [item["Key"] for item in self.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=prefix).get("Contents", [])]

    def lines(self) -> list[list[bytes]]:
        """The lines of each file."""
        return [body.splitlines() for body in self.objects().values()]

    def rows(self, count: int, width: int = 1, partitions: int = 1, first: int = 0) -> DataFrame:
        """Rows with an id and a text of a width in bytes."""
        frame = self.session.range(first, first + count, numPartitions=partitions)
        return frame.select("id", F.repeat(F.lit("x"), width).alias("text"), F.lit("2025-04-05 12:00:00").cast("timestamp").alias(TIME))

    def objects(self) -> dict[str, bytes]:
        """Name -> content of every visible file."""
        listed = self.s3.list_objects_v2(Bucket=OUTPUT, Prefix=f"{self.path}/").get("Contents", [])
        read = {item["Key"]: self.s3.get_object(Bucket=OUTPUT, Key=item["Key"])["Body"].read() for item in listed}
        return {key.removeprefix(f"{self.path}/"): body for key, body in read.items()}

    def ids(self) -> list[int]:
        """The ids in all files, sorted."""
        return sorted(json.loads(line)["id"] for body in self.objects().values() for line in body.splitlines())

    def uploads(self) -> list[tuple[str, str]]:
        """Key and id of the open uploads."""
        listed = self.s3.list_multipart_uploads(Bucket=OUTPUT, Prefix=f"{self.path}/").get("Uploads", [])
        return [(upload["Key"], upload["UploadId"]) for upload in listed]

    def manifests(self) -> list[str]:
        """Names of the manifests in the checkpoint."""
        prefix = f"{self.path}/1/penstock/sinks/out/log/"
        return [item["Key"].removeprefix(prefix) for item in self.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=prefix).get("Contents", [])]


@pytest.fixture
def sink(session: SparkSession, s3: S3Client) -> Sink:
    return Sink(session, s3)


@contextmanager
def _killed_before(owner: type, method: str) -> Iterator[None]:
    """Ends a write before a method, by an error that is never caught, which leaves behind what a killed process leaves."""

    def instead(*arguments: object, **named: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, method, instead)
        yield


def test_files_are_rolled_by_size_and_each_is_whole_lines(sink: Sink) -> None:
    sink.files(**SMALL).publish(sink.rows(1_000, width=1_000), Batch(7, 1_000, 0))
    objects = sink.objects()
    line = len(b'{"id":100,"text":""}\n') + 1_000
    *full, last = [objects[name] for name in sorted(objects)]
    assert len(full) == 1_000 * line // (64 * 1024 + line)
    assert all(64 * 1024 <= len(body) < 64 * 1024 + line for body in full)
    assert 0 < len(last) < 64 * 1024
    assert all(body.endswith(b"}\n") for body in objects.values())
    assert sink.ids() == list(range(1_000))


def test_names_begin_with_the_prefix_tell_query_and_micro_batch_and_end_with_the_format(sink: Sink) -> None:
    sink.files(**SMALL | {"prefix": "user-data-"}).publish(sink.rows(100, width=1_000), Batch(7, 100, 0))
    assert sorted(sink.objects()) == [f"user-data-0123abcd-00000007-000-00{number}.json" for number in range(2)]


def test_each_date_has_files_of_its_own(sink: Sink) -> None:
    later = sink.rows(5, first=5).withColumn(TIME, F.expr(f"{TIME} + interval 1 day"))
    sink.files().publish(sink.rows(5).union(later).coalesce(1), Batch(0, 10, 0))
    assert {name.split("/")[0]: len(body.splitlines()) for name, body in sink.objects().items()} == {"dt=2025-04-05": 5, "dt=2025-04-06": 5}


def test_a_date_is_written_in_the_sinks_pattern_and_zone(sink: Sink) -> None:
    by_hour: dict[str, Any] = {"datePattern": "'year='yyyy/MM/dd--HH'h'mm", "zone": "Asia/Kolkata"}
    rows = sink.rows(1).withColumn(TIME, F.expr("timestamp '2025-12-31 20:15:00'"))
    sink.files(**by_hour).publish(rows, Batch(0, 1, 0))
    assert [name.rpartition("/")[0] for name in sink.objects()] == ["year=2026/01/01--01h45"]


@pytest.mark.on_executors("files")
def test_many_rows_are_written_by_many_tasks(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROWS_A_TASK", 100)
    sink.files(bucketBy="none").publish(sink.rows(1_000, partitions=4), Batch(0, 300, 0))
    assert sorted(name[-12:] for name in sink.objects()) == ["000-000.json", "001-000.json", "002-000.json"]
    assert sink.ids() == list(range(1_000))


def test_a_file_larger_than_a_piece_of_an_upload_is_put_together_right(sink: Sink) -> None:
    count = 5 * PART_BYTES // 2 // 100_000
    (part,) = sink.files(bucketBy="none").publish(sink.rows(count, width=100_000), Batch(0, count, 0)).parts
    assert len(part.etags) == 3
    (body,) = sink.objects().values()
    assert len(body) == part.bytes
    assert sink.ids() == list(range(count))


def test_an_empty_micro_batch_makes_no_file(sink: Sink) -> None:
    manifest = sink.files().publish(sink.rows(0), Batch(0, 0, 0))
    assert (manifest.rows, manifest.parts) == (0, ())
    assert sink.objects() == {} and sink.uploads() == []
    # Nor does its replay.
    assert sink.files().publish(sink.rows(0), Batch(0, 0, 0)) == manifest


def test_nulls_are_written_as_null_and_non_ascii_text_as_utf_8(sink: Sink) -> None:
    rows = sink.rows(1).select("id", F.lit(None).cast("string").alias("text"), F.lit("\u00e9\n\u2028").alias("more"), TIME)
    sink.files().publish(rows, Batch(0, 1, 0))
    (body,) = sink.objects().values()
    assert body.count(b"\n") == 1 and "\u00e9".encode() in body
    assert json.loads(body) == {"id": 0, "text": None, "more": "\u00e9\n\u2028"}


def test_the_envelope_is_not_written(sink: Sink) -> None:
    sink.files().publish(sink.rows(1), Batch(0, 1, 0))
    (body,) = sink.objects().values()
    assert list(json.loads(body)) == ["id", "text"]


@pytest.mark.on_executors("files")
def test_the_staged_rows_of_a_killed_attempt_are_not_visible_and_the_next_attempt_deletes_them(sink: Sink) -> None:
    with _killed_before(Checkpoint, "put_once"):
        sink.files(**SMALL).publish(sink.rows(200, width=1_000), Batch(0, 200, 0))
    left = sink.uploads()
    assert len(left) == 4
    assert sink.objects() == {}
    sink.files(**SMALL).publish(sink.rows(200, width=1_000), Batch(0, 200, 0))
    assert sink.ids() == list(range(200))
    assert sink.uploads() == []


def test_uploads_of_other_micro_batches_and_of_others_are_left_alone(sink: Sink) -> None:
    mine = sink.files()
    keys = [
        f"{sink.path}/dt=2025-04-05/{name}" for name in ("part-0123abcd-00000001-000-000.json", "part-76543210-00000000-000-000.json", "x")
    ]
    for key in keys:
        sink.s3.create_multipart_upload(Bucket=OUTPUT, Key=key)
    mine.publish(sink.rows(1), Batch(0, 1, 0))
    assert [key for key, _ in sink.uploads()] == sorted(keys)


def test_a_replay_completes_what_the_first_try_has_decided_and_writes_nothing(sink: Sink) -> None:
    with _killed_before(Publisher, "publish"):
        sink.files(**SMALL).publish(sink.rows(200, width=1_000), Batch(0, 200, 0))
    staged = sink.uploads()
    manifest = sink.files(**SMALL).publish(sink.rows(200, width=1_000, partitions=3), Batch(0, 200, 0))
    assert sorted((part.key, part.upload_id) for part in manifest.parts) == sorted(staged)
    assert sink.ids() == list(range(200))
    before = {key: sink.s3.head_object(Bucket=OUTPUT, Key=key)["LastModified"] for key, _ in staged}
    assert sink.files(**SMALL).publish(sink.rows(200, width=1_000), Batch(0, 200, 0)) == manifest
    assert {key: sink.s3.head_object(Bucket=OUTPUT, Key=key)["LastModified"] for key, _ in staged} == before


@pytest.mark.parametrize("change", ["another row", "a row more", "a row less", "a row twice instead of another", "another date"])
def test_a_replay_with_other_rows_is_rejected(sink: Sink, change: str) -> None:
    sink.files().publish(sink.rows(10), Batch(0, 10, 0))
    before = sink.objects()
    others = {
        "another row": sink.rows(9).union(sink.rows(1, first=99)),
        "a row more": sink.rows(11),
        "a row less": sink.rows(9),
        "a row twice instead of another": sink.rows(9).union(sink.rows(1)),
        "another date": sink.rows(10).withColumn(TIME, F.expr(f"{TIME} + interval 1 day")),
    }
    with pytest.raises(ReplayDiffers) as raised:
        sink.files().publish(others[change], Batch(0, 10, 0))
    assert (raised.value.code, raised.value.path) == ("JOB-007", "sink out, batch 0")
    assert raised.value.need.startswith("the 10 rows of the first run")
    assert sink.objects() == before and sink.uploads() == []


def test_the_order_of_the_rows_and_the_cut_into_tasks_do_not_matter(sink: Sink) -> None:
    first = sink.files().publish(sink.rows(100), Batch(0, 100, 0))
    assert sink.files().publish(sink.rows(100, partitions=7).orderBy(F.desc("id")), Batch(0, 100, 0)) == first


def test_a_missing_staged_part_stops_the_job(sink: Sink) -> None:
    with _killed_before(Publisher, "publish"):
        sink.files().publish(sink.rows(10), Batch(0, 10, 0))
    # Like a bucket's lifecycle rule for incomplete uploads while the job is down.
    ((key, upload),) = sink.uploads()
    sink.s3.abort_multipart_upload(Bucket=OUTPUT, Key=key, UploadId=upload)
    with pytest.raises(StagedPartGone) as raised:
        sink.files().publish(sink.rows(10), Batch(0, 10, 0))
    error = raised.value
    assert (error.code, error.path, error.need) == ("JOB-006", f"s3a://{OUTPUT}/{key}", f"the upload {upload} still open, or completed")
    assert "keep incomplete multipart uploads" in error.fix


def test_a_foreign_file_with_the_name_of_a_part_is_not_mistaken_for_it(sink: Sink) -> None:
    with _killed_before(PartLog, "publish"):
        sink.files().publish(sink.rows(10), Batch(0, 10, 0))
    (name,) = sink.objects()
    sink.s3.put_object(Bucket=OUTPUT, Key=f"{sink.path}/{name}", Body=b"other", Metadata={TOKEN: "another"})
    with pytest.raises(StagedPartGone):
        sink.files().publish(sink.rows(10), Batch(0, 10, 0))


@pytest.mark.parametrize("held", [False, True])
def test_files_that_a_reader_has_moved_away_before_the_driver_dies_are_neither_missed_nor_written_again(sink: Sink, held: bool) -> None:
    """The driver dies before its next manifest, once right after the mark and once later: its chunks may or may not exist."""
    for number, point in enumerate([(Publisher, "forget"), None]):
        writer = sink.held(interval="5m", size="64k") if held else sink.files(**SMALL)
        rows = sink.rows(65, width=1_000, first=65 * number)
        with _killed_before(*point) if point else nullcontext():
            sink.at(writer, number, number, rows)
        moved = sink.objects()
        assert len(moved) == 1 and sink.ids() == list(range(65 * number, 65 * number + 65))
        for name in moved:
            sink.s3.delete_object(Bucket=OUTPUT, Key=f"{sink.path}/{name}")
        again = sink.held(interval="5m", size="64k") if held else sink.files(**SMALL)
        again.check()
        sink.at(again, number, number, rows)
        again.idle(FOREVER_MS)
        assert sink.objects() == {} and sink.chunks() == [] and sink.uploads() == []
    # One mark, that of the last manifest.
    prefix = f"{sink.path}/1/penstock/sinks/out/published/"
    assert len(sink.s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=prefix)["Contents"]) == 1


class MeetingBeforeTheManifest(Checkpoint):
    """A checkpoint whose two drivers have both staged their rows before either writes its manifest."""

    meeting = threading.Barrier(2, timeout=60)

    def put_once(self, name: str, text: str) -> bool:
        self.meeting.wait()
        return super().put_once(name, text)


def test_of_two_writers_of_the_same_micro_batch_one_decides_and_the_other_publishes_nothing_of_its_own(sink: Sink) -> None:
    writers = [sink.files(MeetingBeforeTheManifest, **SMALL) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        written = [pool.submit(writer.publish, sink.rows(200, width=1_000), Batch(0, 200, 0)) for writer in writers]
        first, second = (future.result(timeout=120) for future in written)
    assert first == second
    tokens = {sink.s3.head_object(Bucket=OUTPUT, Key=part.key)["Metadata"][TOKEN] for part in first.parts}
    assert tokens == {part.token for part in first.parts}
    assert sink.ids() == list(range(200))
    assert sink.uploads() == []


def test_a_slow_writer_may_still_decide_after_another_has_staged_its_rows(sink: Sink) -> None:
    staged, go, decided = threading.Event(), threading.Event(), threading.Event()

    class Slow(Checkpoint):
        """Pauses with its rows staged, like a driver considered dead."""

        def put_once(self, name: str, text: str) -> bool:
            staged.set()
            assert go.wait(60)
            return super().put_once(name, text)

    class Next(Checkpoint):
        """Resumes the slow driver when the other one is about to decide."""

        def put_once(self, name: str, text: str) -> bool:
            go.set()
            assert decided.wait(60)
            return super().put_once(name, text)

    def write_slowly() -> Manifest:
        try:
            return sink.files(Slow, **SMALL).publish(sink.rows(200, width=1_000), Batch(0, 200, 0))
        finally:
            decided.set()

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(write_slowly)
        assert staged.wait(60)
        manifest = sink.files(Next, **SMALL).publish(sink.rows(200, width=1_000), Batch(0, 200, 0))
        assert slow.result(timeout=60) == manifest
    assert sink.ids() == list(range(200))
    assert sink.uploads() == []


def test_manifests_are_kept_as_long_as_a_replay_may_need_them(sink: Sink) -> None:
    for batch in range(3):
        files = sink.files()
        files.checkpoint.retained = 2
        files.publish(sink.rows(1, first=batch), Batch(batch, 1, 0))
    assert sorted(sink.manifests()) == ["0000000001.json", "0000000002.json"]


@pytest.mark.on_executors("files")
def test_rows_of_several_micro_batches_share_a_file_until_it_is_old_full_or_has_got_none_for_a_while(sink: Sink) -> None:
    files = sink.held(interval="5m", inactivity="2m", size="64k")
    for number in range(3):
        sink.at(files, number, 60 * number, sink.rows(10, first=10 * number))
    files.idle(200_000)
    assert sink.objects() == {} and len(sink.chunks()) == 3
    # Old: it was opened at 0 s.
    sink.at(files, 3, 300, sink.rows(10, first=30))
    assert list(map(len, sink.lines())) == [40] and sink.chunks() == []
    # Full: the last micro-batch's rows make it so.
    sink.at(files, 4, 310, sink.rows(30, width=1_000, first=40))
    sink.at(files, 5, 320, sink.rows(40, width=1_000, first=70))
    assert sorted(map(len, sink.lines())) == [40, 70] and sink.chunks() == []
    # Nothing for two minutes.
    sink.at(files, 6, 330, sink.rows(1, first=110))
    files.idle(449_999)
    assert sorted(map(len, sink.lines())) == [40, 70]
    files.idle(450_000)
    assert sorted(map(len, sink.lines())) == [1, 40, 70]
    # The job ends.
    sink.at(files, 7, 500, sink.rows(1, first=111))
    files.idle(FOREVER_MS)
    assert sink.ids() == list(range(112))
    assert sink.chunks() == [] and sink.uploads() == []
    assert sorted(sink.objects())[-1] == "part-0123abcd-00000007-c000009-000.json"


@pytest.mark.parametrize(
    ("owner", "method"),
    [(Checkpoint, "put_once"), (Publisher, "publish"), (PartLog, "publish"), (Publisher, "forget"), (PartLog, "finish")],
)
def test_a_driver_killed_while_it_closes_a_file_of_several_micro_batches_loses_and_doubles_nothing(
    sink: Sink, owner: type, method: str
) -> None:
    sink.at(sink.held(interval="5m"), 0, 0, sink.rows(10))
    with _killed_before(owner, method):
        sink.at(sink.held(interval="5m"), 1, 300, sink.rows(10, first=10))
    before = sink.objects()
    again = sink.held(interval="5m")
    again.check()
    sink.at(again, 1, 300, sink.rows(10, first=10, partitions=2))
    assert sink.ids() == list(range(20))
    assert before.items() <= sink.objects().items()
    # And while it closes one between micro-batches.
    sink.at(again, 2, 310, sink.rows(10, first=20))
    with _killed_before(owner, method):
        again.idle(FOREVER_MS)
    last = sink.held(interval="5m")
    last.check()
    last.idle(FOREVER_MS)
    assert sink.ids() == list(range(30))
    assert sink.chunks() == [] and sink.uploads() == []


def test_a_driver_considered_dead_can_not_close_parts_that_its_successor_continues(sink: Sink) -> None:
    dead, successor = sink.held(interval="5m"), sink.held(interval="5m")
    sink.at(dead, 0, 0, sink.rows(10))
    sink.at(successor, 1, 10, sink.rows(10, first=10))
    dead.idle(FOREVER_MS)
    sink.at(dead, 1, 10, sink.rows(10, first=10))
    assert sink.objects() == {}
    dead.idle(FOREVER_MS)
    # Whichever closes it, the other one continues from there.
    sink.at(successor, 2, 20, sink.rows(10, first=20))
    successor.idle(FOREVER_MS)
    assert sorted(map(len, sink.lines())) == [10, 20]
    assert sink.ids() == list(range(30))


def test_large_chunks_are_put_together_by_s3_itself(sink: Sink) -> None:
    files = sink.held(interval="5m")
    sink.at(files, 0, 0, sink.rows(120, width=100_000))
    sink.at(files, 1, 10, sink.rows(10, first=120))
    assert len(sink.chunks()) == 3
    files.idle(FOREVER_MS)
    assert len(sink.objects()) == 1
    assert sink.ids() == list(range(130))


def test_directories_are_named_by_the_values_of_columns_as_hive_names_them(sink: Sink) -> None:
    rows = sink.session.createDataFrame([(1, "a/b"), (2, None), (3, ""), (4, "plain é")], "id int, name string")
    sink.files(bucketBy=["name", "id"], suffix=".jsonl").publish(rows, Batch(0, 4, 0))
    assert sorted(name.rsplit("/", 1)[0] for name in sink.objects()) == [
        "name=__HIVE_DEFAULT_PARTITION__/id=2",
        "name=__HIVE_DEFAULT_PARTITION__/id=3",
        "name=a%2Fb/id=1",
        "name=plain é/id=4",
    ]
    assert all(name.endswith(".jsonl") for name in sink.objects())
    with pytest.raises(BadDeclaration, match="JOB-004"):
        sink.files(bucketBy=["nobody"]).publish(rows, Batch(1, 4, 0))


def test_a_directory_of_a_long_value_has_its_beginning_and_a_hash_of_it_in_its_name(sink: Sink) -> None:
    names = ["x" * 200, "x" * 201, "/" * 1_100, "/" * 1_100 + "a", "é" * 1_100, "😀" * 1_100, "a/" + "b" * 1_100]
    rows = sink.session.createDataFrame([(number, name) for number, name in enumerate(names)], "id int, name string")
    for number, prefix in enumerate(("first-", "second-")):
        sink.files(bucketBy=["name"], prefix=prefix).publish(rows, Batch(number, 7, 0))
    directories = {json.loads(body)["id"]: key.split("/")[0].removeprefix("name=") for key, body in sink.objects().items()}
    # The same on every attempt, different for each value.
    assert len({key.split("/")[0] for key in sink.objects()}) == len(set(directories.values())) == 7
    assert directories[0] == names[0]
    assert all(len(directory.encode()) <= 200 for directory in directories.values())
    assert all(re.fullmatch("[^%/]+-[0-9a-f]{32}", directories[number]) for number in range(1, 7))
    assert directories[6].startswith("a_bbb") and directories[4].startswith("ééé")
    columns = {f"c{number}": F.repeat("name", 4) for number in range(12)}
    sink.files(bucketBy=list(columns)).publish(rows.withColumns(columns), Batch(2, 7, 0))
    assert max(len(f"{sink.path}/{key}".encode()) for key in sink.objects()) < 1_024 - 250


def test_parquet_is_written_at_once_or_over_micro_batches_and_any_reader_reads_it(sink: Sink) -> None:
    at_once = sink.files(format="parquet", bucketBy="none", roll={"size": "64k", "interval": "1ms"})
    at_once.publish(sink.rows(1_000, width=100), Batch(0, 1_000, 0))
    held = sink.held(format="parquet", interval="5m")
    sink.at(held, 1, 0, sink.rows(10, first=1_000))
    sink.at(held, 2, 10, sink.rows(10, first=1_010))
    # An additional column, as after an upgrade of the app: the open file is closed without it.
    sink.at(held, 3, 20, sink.rows(10, first=1_020).withColumn("more", F.lit(1)))
    held.idle(FOREVER_MS)
    tables = {name: pq.read_table(io.BytesIO(body)) for name, body in sink.objects().items()}
    assert sorted(number for table in tables.values() for number in table["id"].to_pylist()) == list(range(1_030))
    assert sorted((table.num_rows, table.column_names) for table in tables.values()) == [
        (10, ["id", "text", "more"]),
        (20, ["id", "text"]),
        (1_000, ["id", "text"]),
    ]
    assert all(name.endswith(".parquet") for name in tables)
    assert sink.chunks() == [] and sink.uploads() == []


def test_an_open_parquet_file_accepts_rows_of_an_app_that_was_changed_to_allow_nulls(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    held = sink.held(format="parquet", interval="5m")
    more = F.array(F.struct(F.col("id").alias("n"))).alias("more")
    never_null = sink.rows(10).select("id", more, F.create_map(F.lit("k"), "id").alias("by"), TIME)
    with monkeypatch.context() as patch:
        # As an earlier version wrote its chunks: with the app's nullability.
        patch.setattr(part_formats, "_nullable", lambda field: field)
        sink.at(held, 0, 0, never_null)
    nulls = ("IF(id < 15, id, NULL) id", "array(named_struct('n', NULLIF(id, 15))) more", "map('k', NULLIF(id, 15)) by")
    sink.at(held, 1, 10, sink.rows(10, first=10).selectExpr(*nulls, TIME))
    held.idle(FOREVER_MS)
    (body,) = sink.objects().values()
    assert sorted(pq.read_table(io.BytesIO(body))["id"].to_pylist(), key=str) == sorted([*range(15), *[None] * 5], key=str)
    assert sink.chunks() == [] and sink.uploads() == []


def test_a_topic_as_the_output_gets_the_rows_as_json_with_their_nulls(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    topic = f"{job.name}-out"
    kafka_topics.create(surroundings.brokers, {topic: 1})
    job.edit(lambda spec: spec["sinks"].update(out={"kafka": {"topic": topic}}))
    job.feed("a", {"key": "k", "at": "2025-04-05T12:00:00Z", "name": "one"}, {"key": "k", "at": "2025-04-05T12:00:00Z", "name": "skip"})
    with job.running() as running:
        assert running.reading["outputs"] == ["out"]
        running.until_read({"a": [2]})
    (message,) = kafka_topics.read(surroundings.brokers, topic)
    assert message.key() is None
    assert json.loads(message.value() or b"") == {"key": "k", "name": "one", "amount": None}
