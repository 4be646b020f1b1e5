"""``penstock inspect`` on a recorded checkpoint, whole and with parts that are damaged or gone."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.jobs.storage.errors import CheckpointMissing
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import WrongUsage
from tests.emulated.job_history import generation
from tests.emulated.recorded_job import FOLDER, RECORDED, RecordedJob


@pytest.fixture
def empty(aws: EmulatedAws, tmp_path: Path) -> RecordedJob:
    """A job that has not run."""
    return RecordedJob(aws, tmp_path)


@pytest.fixture(scope="module")
def place(aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> RecordedJob:
    """The recorded job; each test leaves it as it was."""
    place = RecordedJob(aws, tmp_path_factory.mktemp("place"))
    place.restore()
    return place


def test_a_checkpoint_is_shown_as_its_files_have_it(place: RecordedJob, capsys: pytest.CaptureFixture[str]) -> None:
    code, content = place.json(capsys)
    assert (code, content["errors"], content["generation"], content["finished"]) == (0, [], None, False)
    assert content["checkpoint"] == f"s3a://{place.bucket}/{FOLDER}"
    queries = {query["name"]: query for query in content["queries"]}
    assert list(queries) == ["", "names", "once", "pairs"]
    first = queries[""]
    assert (first["microBatch"], first["at"], first["firstKept"], first["lastPlanned"]) == (5, "2026-11-25T16:29:32.685000Z", 0, 5)
    assert first["committed"] is not None
    (source,) = first["sources"]
    assert source["names"] == ["a"]
    assert source["partitions"] == [{"topic": "every-state-a", "partition": 0, "start": 6, "end": 6}]
    assert first["record"]["watermarks"]["inForceMs"] == 1_743_856_221_000
    assert {name for source in queries["pairs"]["sources"] for name in source["names"]} == {"a", "b"}
    (file,) = first["sinks"][0]["published"]
    assert (file["key"], file["rows"], file["bytes"]) == ("every-state/dt=2025-04-05/part-982d2ea2-00000005-000-000.json", 5, 90)
    assert sum(query["amounts"]["commits"]["objects"] for query in queries.values()) == 6 * 3 + queries["pairs"]["lastCommitted"] + 1
    parts = [amount for query in queries.values() for amount in query["amounts"].values()]
    assert content["amount"] == {"objects": sum(one["objects"] for one in parts), "bytes": sum(one["bytes"] for one in parts)}


def test_state_is_shown_with_its_versions_and_columns(place: RecordedJob, capsys: pytest.CaptureFixture[str]) -> None:
    _, content = place.json(capsys)
    (window,), (keyed,), (once,), (join,) = (query["operators"] for query in content["queries"])
    assert [one["name"] for one in (window, once, join)] == ["stateStoreSave", "dedupeWithinWatermark", "symmetricHashJoin"]
    (store,) = window["stores"]
    assert (store["partitions"], store["version"], store["oldestVersion"]) == (2, 6, 1)
    assert store["schemas"] == [
        {"name": "", "key": "key STRING, window STRUCT<start: TIMESTAMP, end: TIMESTAMP>", "value": "count BIGINT"},
    ]
    (store,) = join["stores"]
    assert [schema["name"] for schema in store["schemas"]][:2] == ["left-keyToNumValues", "left-keyWithIndexToValue"]
    families = {schema["name"]: schema for schema in keyed["stores"][0]["schemas"]}
    assert families["seen"]["value"] == "value STRUCT<names: STRING, ends: BIGINT>"


def test_state_that_has_been_repartitioned_is_whole_without_the_partitions_of_before(
    place: RecordedJob, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of one partition: what is left of the other one is older."""
    with ExitStack() as held:
        for name, content in RECORDED.items():
            if re.fullmatch(r"(queries/\w+/)?offsets/\d+", name):
                log = content.replace(b'"spark.sql.shuffle.partitions":"2"', b'"spark.sql.shuffle.partitions":"1"')
                assert log != content
                held.enter_context(place.damaged(name, log))
            if re.fullmatch(r"state/0/1/6(_[0-9a-f-]+)?\.\w+", name):
                held.enter_context(place.damaged(name, None))
        code, found = place.json(capsys)
    assert (code, found["errors"]) == (0, [])
    (window,), *_ = (query["operators"] for query in found["queries"])
    assert (window["stores"][0]["partitions"], window["stores"][0]["version"]) == (1, 6)


def test_another_micro_batch_is_shown_and_one_that_is_gone_is_named(place: RecordedJob, capsys: pytest.CaptureFixture[str]) -> None:
    code, content = place.json(capsys, "--micro-batch", "0")
    once = content["queries"][2]
    assert (code, once["microBatch"], once["operators"][0]["stores"][0]["version"]) == (0, 0, 1)
    assert (once["sinks"][0]["decision"], once["sources"][0]["partitions"][0]["start"]) == (0, None)
    with pytest.raises(WrongUsage) as raised:
        place.inspect("--micro-batch", "99")
    assert "0 to 5" in (raised.value.need or "")


def test_a_generation_has_its_own_checkpoint(empty: RecordedJob, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckpointMissing):
        empty.inspect()
    empty.restore("offsets/")
    empty.restore("commits/")
    empty.restore("penstock/")
    folder = JobFolder(f"s3a://{empty.bucket}/every-state", empty.s3)
    for number in (1, 2):
        folder.begin(generation(number))
    code, content = empty.json(capsys)
    assert (code, content["generation"], content["queries"][0]["microBatch"], content["errors"]) == (0, 2, -1, [])
    code, content = empty.json(capsys, "--generation", "1")
    assert (code, content["generation"], content["queries"][0]["microBatch"]) == (0, 1, 5)
    with pytest.raises(WrongUsage) as raised:
        empty.inspect("--generation", "3")
    assert raised.value.need == "a generation of every-state: 1, 2"


# What is damaged or gone at the same time: name -> content, None for what is gone, and the error's path below the checkpoint.
DAMAGES: list[dict[str, tuple[bytes | None, str]]] = [
    {
        "offsets/5": (None, ""),
        "penstock/batches/5.json": (b'{"batch":5,', "/penstock/batches/5.json"),
        "penstock/identity": (None, ""),
        "state/0/_metadata/metadata": (b"v1\n{}", "/state/0/_metadata/metadata"),
        "penstock/sinks/out/log/0000000005.json": (b"{}", "/penstock/sinks/out/log/0000000005.json"),
        "queries/names/commits/": (None, "/queries/names"),
        "queries/once/state/0/1/6_": (None, "/queries/once/state/0/1"),
    },
    {
        "offsets/5": (b"", "/offsets/5"),
        "penstock/batches/5.json": (None, ""),
        "state/0/0/_metadata/schema": (b"\x00\x02v2\x00\x00\x00\x01\x00\xff{", "/state/0/0/_metadata/schema"),
        "queries/once/penstock/batches/5.json": (b"\xff\xfe", "/queries/once/penstock/batches/5.json"),
        "queries/names/state/0/_metadata/v2/0": (None, "/queries/names"),
    },
]


@pytest.mark.parametrize("damages", DAMAGES)
def test_what_is_damaged_or_gone_is_said_beside_the_rest(
    place: RecordedJob, capsys: pytest.CaptureFixture[str], damages: dict[str, tuple[bytes | None, str]]
) -> None:
    with ExitStack() as stack:
        for name, (content, _) in damages.items():
            stack.enter_context(place.damaged(name, content))
        code, document = place.json(capsys)
        assert place.inspect() == code == 1
    out = capsys.readouterr().out
    said = [(error["code"], error["path"]) for error in document["errors"]]
    assert sorted(said) == sorted(("JOB-008", f"s3a://{place.bucket}/{FOLDER}{path}") for _, path in damages.values())
    assert all(error["given"] and error["need"] and error["fix"] for error in document["errors"])
    # The rest is shown.
    assert document["queries"][3]["operators"][0]["name"] == "symmetricHashJoin"
    assert out.count("error[JOB-008]") == len(damages) and "symmetricHashJoin" in out


def test_the_table_has_offsets_state_and_files(place: RecordedJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.inspect() == 0
    out = capsys.readouterr().out
    shown = ("query pairs", "every-state-a-0", "0 stateStoreSave", "left-keyToNumValues", "published", "2025-04-05 12:30:21 UTC after it")
    assert [text for text in shown if text not in out] == []
