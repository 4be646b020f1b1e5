"""What a driver's events say of a job with one query, and of one with several."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.scripts.local.job_progress import JobProgress


def _reading(offsets: Mapping[str, object], outputs: list[str], **more: object) -> dict[str, object]:
    return {"event": "reading", "offsets": offsets, "outputs": outputs, "sideOutputs": {"quarantined": "errors"}, "ui": "http://ui", **more}


def _several() -> JobProgress:
    progress, names = JobProgress(), ["job", "job.other"]
    progress.take(_reading({"a": {"ta": {"0": 0}}}, ["out"], query="job", queries=names))
    assert not progress.reads
    progress.take(_reading({"a": {"ta": {"0": 0}}, "b": {"tb": {"0": 0}}}, ["other"], query="job.other", queries=names))
    assert progress.reads
    return progress


def _batch(query: str, rows_in: Mapping[str, int], tags: Mapping[str, int]) -> dict[str, object]:
    return {"event": "batch", "query": query, "totalRowsIn": rows_in, "totalTags": tags}


def test_a_job_of_one_query_is_what_its_last_events_say() -> None:
    progress = JobProgress()
    assert not progress.reads
    progress.take(_reading({"a": {"ta": {"0": 0}}}, ["out"]))
    assert progress.reads
    assert progress.reading["outputs"] == ["out"]
    batch = {"event": "batch", "totalRowsIn": {"a": 2}, "totalTags": {"data": 2}}
    progress.take(batch)
    progress.take(batch | {"totalRowsIn": {"a": 3}, "totalTags": {"data": 2, "late": 1}})
    committed = {"event": "committed", "ends": {"ta": {"0": 3}}}
    progress.take(committed)
    assert progress.batch(committed)["totalRowsIn"] == {"a": 3}
    assert (progress.rows_in, progress.totals, progress.ends) == ({"a": 3}, {"data": 2, "late": 1}, {"ta": {"0": 3}})
    assert not progress.idle
    progress.take({"event": "idle", "lagRecords": 0})
    assert progress.idle


def test_windows_are_open_until_all_queries_have_none() -> None:
    progress = _several()
    for query, open_ in (("job", 3), ("job.other", 2), ("job", 0)):
        progress.take({"event": "committed", "query": query, "ends": {}, "openWindows": open_})
    assert progress.open_windows == 2
    progress.take({"event": "committed", "query": "job.other", "ends": {}})
    assert progress.open_windows == 0


def test_what_several_queries_read_and_write_is_taken_together() -> None:
    reading = _several().reading
    assert (list(reading["offsets"]), reading["outputs"], reading["ui"]) == (["a", "b"], ["out", "other"], "http://ui")


def test_rows_are_summed_over_queries_and_a_partition_is_read_when_all_of_its_readers_have_read_it() -> None:
    progress = _several()
    progress.take(_batch("job", {"a": 5}, {"data": 4, "quarantined": 1}))
    progress.take({"event": "committed", "query": "job", "ends": {"ta": {"0": 5, "1": 2}}})
    assert progress.ends == {"ta": {}}
    progress.take(_batch("job.other", {"b": 7}, {"data": 9}))
    progress.take({"event": "committed", "query": "job.other", "ends": {"ta": {"0": 3}, "tb": {"0": 7}}})
    assert progress.ends == {"ta": {"0": 3}, "tb": {"0": 7}}
    assert (progress.rows_in, progress.totals) == ({"a": 5, "b": 7}, {"data": 13, "quarantined": 1})


def test_a_job_is_idle_when_all_of_its_queries_are() -> None:
    progress = _several()
    progress.take({"event": "idle", "query": "job"})
    assert not progress.idle
    progress.take({"event": "idle", "query": "job.other"})
    assert progress.idle
    progress.take(_batch("job", {"a": 1}, {}))
    assert not progress.idle


def test_a_parallelism_that_the_checkpoint_cannot_have_is_said_with_what_to_do() -> None:
    progress = JobProgress()
    progress.take(_reading({}, ["out"], parallelism={"asked": 8, "checkpoint": 4}))
    (sentence,) = progress.fixed_parallelism
    assert sentence.startswith("its state stays in 4 shuffle partitions, those of its checkpoint, instead of the 8 of the spec; ")
    assert all(way in sentence for way in ("stages.stateful: 4", "upgradeMode: savepoint", "stateless"))


def test_of_several_queries_those_whose_parallelism_differs_are_named() -> None:
    progress = _several()
    assert progress.fixed_parallelism == []
    progress.take(_reading({}, ["other"], query="job.other", parallelism={"asked": 2, "checkpoint": 3}))
    (sentence,) = progress.fixed_parallelism
    assert sentence.startswith("job.other: its state stays in 3 shuffle partitions")


def test_partitions_of_files_add_up_over_micro_batches_and_are_those_of_a_query() -> None:
    progress = JobProgress()
    lines = {"partitions": 2, "files": 1, "bytes": 1024}
    for query in ("job", "job", "job.other"):
        progress.take({**_batch(query, {}, {}), "fileReads": {"lines": lines}, "repartitions": [10]})
    progress.take({**_batch("job", {}, {}), "fileReads": {}, "repartitions": []})
    assert progress.partitions == [
        "job: lines: 4 partitions of 2 files, 2.0 KiB",
        "job: 10 partitions after a repartition",
        "job.other: lines: 2 partitions of 1 file, 1.0 KiB",
        "job.other: 10 partitions after a repartition",
    ]
