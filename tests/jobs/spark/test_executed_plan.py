"""The partitions that a micro-batch of files has run in: what the app's batch job would print."""

from __future__ import annotations

from tests.jobs.spark.running import OUTPUT, Surroundings


def test_a_run_over_files_reports_its_partitions_and_its_rows(surroundings: Surroundings) -> None:
    keyword = {"keyword": "keyword"}
    job = surroundings.job("penstock.jobs.apps.keyword_lines", sources={}, trigger="availableNow", bounded=True, parameters=keyword)
    folder = f"in/{job.name}"
    job.edit(lambda spec: spec.update(sources={"lines": {"files": {"path": folder, "format": "text"}}}))
    job.edit(lambda spec: spec["sinks"]["out"]["files"].update(bucketBy="none"))
    job.edit(lambda spec: spec["sinks"].pop("late"))
    bodies = [b"a keyword\nnone\n", b"keywords\nKeyword\nthe keyword\n", b""]
    for number, body in enumerate(bodies):
        surroundings.s3.put_object(Bucket=OUTPUT, Key=f"{folder}/{number}.txt", Body=body)
    with job.running() as running:
        finished = running.wait("finished")
        running.wait("stopped")
    read = next(batch for batch in running.batches if batch["fileReads"])
    assert read["repartitions"] == [10]
    lines = read["fileReads"]["lines"]
    assert lines["partitions"] == 2
    assert lines["bytes"] == sum(map(len, bodies))
    assert (finished["totalRowsIn"], finished["totalTags"]["data"]) == ({"lines": 5}, 3)
