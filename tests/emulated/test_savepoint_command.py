"""``penstock savepoint`` on an emulated S3: what it takes, lists, shows, refuses and deletes."""

from __future__ import annotations

import json
import textwrap
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.infra.environment import Environment
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.generation import Fingerprint, Generation, Versions
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.job_history import generation
from tests.emulated.recorded_job import RecordedJob
from tests.emulated.small_stacks import environment
from tests.scripts.cli.called import Called, penstock

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: NAME}
spec:
  app: clicks
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources: {a: {kafka: {topic: clicks}}}
  sinks:
    out: {files: {path: NAME}}
    hook: {webhook: {connection: hook}}
"""
# Of the recorded job.
QUERIES = ("", "names", "once", "pairs")


@dataclass
class Desk:
    """An environment with two jobs, ``clicks`` and ``fork``.

    Args:
        own: the environment.
        folder: for its files.
    """

    own: Environment
    folder: Path

    def __post_init__(self) -> None:
        self.s3 = AwsAccess(self.own).client("s3")
        self.bucket = self.own.spec.buckets.checkpoints
        self.s3.create_bucket(Bucket=self.bucket)
        self.uri = f"s3a://{self.bucket}/clicks"
        (self.folder / "environment.yaml").write_text(self.own.text())

    def begin(self, job: str = "clicks") -> None:
        """What a job's first driver leaves before its first micro-batch."""
        what = {"fingerprint": Fingerprint(app="a", spec="s", plan="p"), "versions": Versions(penstock=None, spark="4.3.0")}
        record = {"number": 1, "checkpoint": 1, "parent": None, "mode": "last-state", "began": datetime.now(UTC)}
        folder = JobFolder(f"s3a://{self.bucket}/{job}", self.s3)
        folder.begin(Generation.model_validate({**record, **what, "queries": {"": QueryRecord.of(["a"], [])}}))
        folder.checkpoint(1).identity()

    def commit(self) -> None:
        """Micro-batch 0 of a query without state."""
        JobFolder(self.uri, self.s3).checkpoint(1).record(BatchRecord(batch=0, total_rows_in={"a": 5_000}))
        log = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1764000000000,"conf":{}}\n{"clicks":{"0":5000}}'
        for name, content in (("metadata", b'{"id":"x"}'), ("offsets/0", log), ("commits/0", b"v2\n{}"), ("sources/0/0", b"0v1\n{}")):
            self.s3.put_object(Bucket=self.bucket, Key=f"clicks/checkpoints/1/{name}", Body=content)

    def savepoint(self, action: str, *words: str, job: str = "clicks") -> Called:
        return penstock("savepoint", action, str(self.folder / "environment.yaml"), "--job", job, *words)

    def of(self, name: str) -> SavepointFolder:
        return Savepoints(self.uri, self.s3).of(name)

    def requested(self, job: str = "clicks") -> RewindRequest | None:
        return RewindRequestFile(f"s3a://{self.bucket}/{job}", self.s3).read()


@pytest.fixture
def desk(aws: EmulatedAws, tmp_path: Path) -> Desk:
    data = environment(aws, f"sp{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
    for name in ("clicks", "fork"):
        (tmp_path / f"{name}.yaml").write_text(SPEC.replace("NAME", name))
    data["spec"]["jobs"] = [str(tmp_path / "clicks.yaml"), str(tmp_path / "fork.yaml")]
    return Desk(Environment.model_validate(data), tmp_path)


def test_a_savepoint_is_taken_listed_shown_and_deleted(desk: Desk) -> None:
    desk.begin()
    desk.commit()
    assert "has no savepoints" in desk.savepoint("list").stdout
    done = desk.savepoint("create", "--name", "one")
    assert done.returncode == 0, done.stderr
    assert "after micro-batch 0 of 2025-11-24 16:00:00 UTC, and 5,000 records" in done.stdout
    assert "one is complete" in done.stderr
    again = desk.savepoint("create", "--name", "one")
    assert (again.returncode, "DEP-030" in again.stderr) == (2, True)

    shown = json.loads(desk.savepoint("show", "one", "--verify", "-o", "json").stdout)
    assert (shown["job"], shown["generation"]["number"], shown["queries"][""]["sources"]) == (
        "clicks",
        1,
        [{"topics": {"clicks": {"0": 5000}}, "offset": None}],
    )
    assert [one["name"] for one in shown["objects"]] == ["commits/0", "metadata", "offsets/0", "penstock/batches/0.json", "sources/0/0"]
    assert ["-", "clicks", "0", "5,000"] in [line.split() for line in desk.savepoint("show", "one").stdout.splitlines()]
    # Without a name it is that of the time.
    assert desk.savepoint("create").returncode == 0
    rows = [line.split() for line in desk.savepoint("list").stdout.splitlines()]
    assert [row[:2] for row in rows if "complete" in row] == [[name, "complete"] for name in Savepoints(desk.uri, desk.s3).names()]

    assert "USE-001" in desk.savepoint("delete", "one").stderr
    # Neither the folder of all, nor a part of one.
    for name in ("", ".", "..", f"one/{desk.of('one').manifest().data}", "one/"):
        assert "USE-001" in desk.savepoint("delete", name, "--yes").stderr
    assert "USE-001" in desk.savepoint("delete", "--yes").stderr
    deleted = desk.savepoint("delete", "one", "--yes")
    assert (deleted.returncode, "6 objects deleted" in deleted.stderr) == (0, True)
    assert desk.of("one").listed() == {}
    assert "JOB-095" in desk.savepoint("delete", "one", "--yes").stderr


def test_a_savepoint_that_is_not_whole_is_said(desk: Desk) -> None:
    desk.begin()
    desk.commit()
    assert desk.savepoint("create", "--name", "one").returncode == 0
    data = f"clicks/savepoints/one/{desk.of('one').manifest().data}"
    original = desk.s3.get_object(Bucket=desk.bucket, Key=f"{data}/offsets/0")["Body"].read()
    desk.s3.put_object(Bucket=desk.bucket, Key=f"{data}/offsets/0", Body=original.replace(b"5000", b"4000"))
    assert desk.savepoint("show", "one").returncode == 0
    assert "JOB-096" in desk.savepoint("show", "one", "--verify").stderr
    desk.s3.delete_object(Bucket=desk.bucket, Key=f"{data}/offsets/0")
    for words in (("show", "one"), ("start-from", "one", "--yes")):
        assert "JOB-096" in desk.savepoint(*words).stderr
    desk.s3.delete_object(Bucket=desk.bucket, Key="clicks/savepoints/one/manifest.json")
    listed = json.loads(desk.savepoint("list", "-o", "json").stdout)["savepoints"]
    assert [(one["name"], one["state"], one["error"]["code"]) for one in listed] == [("one", "incomplete", "JOB-095")]
    assert "JOB-095" in desk.savepoint("start-from", "one", "--yes").stderr
    assert desk.savepoint("delete", "one", "--yes").returncode == 0
    assert desk.requested() is None


def test_what_cannot_be_saved_is_refused(desk: Desk) -> None:
    assert "JOB-086" in desk.savepoint("create").stderr
    desk.begin()
    done = desk.savepoint("create")
    assert (done.returncode, "DEP-031" in done.stderr) == (2, True)
    assert "USE-001" in desk.savepoint("create", "--name", "A b").stderr
    assert Savepoints(desk.uri, desk.s3).names() == []


def test_a_start_shows_what_is_written_again_and_refuses_before_it_requests_anything(desk: Desk) -> None:
    desk.begin()
    desk.commit()
    assert desk.savepoint("create", "--name", "one").returncode == 0
    shown = desk.savepoint("start-from", "one", "--plan-only")
    assert shown.returncode == 0, shown.stderr
    assert "as generation 2 with a new checkpoint" in shown.stdout
    assert "are written again, in new files" in shown.stdout and "with other idempotency keys" in shown.stdout
    # Nobody can be asked, and an emulated cluster has no pods.
    assert "USE-001" in desk.savepoint("start-from", "one").stderr
    assert "DEP-017" in desk.savepoint("start-from", "one", "--yes").stderr
    assert desk.requested() is None
    # Another job, which has not run, and needs consent.
    uri = f"{desk.uri}/savepoints/one"
    assert "JOB-098" in desk.savepoint("start-from", uri, job="fork").stderr
    never = desk.savepoint("start-from", uri, "--fork", "--allow-non-restored-state", job="fork")
    assert (never.returncode, "DEP-053" in never.stderr) == (2, True)
    # Lines that can be put into the spec as they are, and then it says what is left to do.
    lines = f"spec:\n  initialSavepointPath: {uri}\n  allowNonRestoredState: true\n"
    assert textwrap.indent(lines, " " * 7) in f"{never.stderr}\n"
    spec = desk.folder / "fork.yaml"
    spec.write_text(spec.read_text().replace("spec:\n", lines))
    named = desk.savepoint("start-from", uri, "--fork", "--allow-non-restored-state", job="fork")
    assert "DEP-053" in named.stderr and "names this savepoint" in named.stderr
    desk.begin("fork")
    forked = desk.savepoint("start-from", uri, "--fork", "--plan-only", job="fork")
    assert "fork starts from savepoint one of clicks" in forked.stdout
    assert desk.requested("fork") is None


def test_a_start_says_of_state_of_another_parallelism_that_it_is_repartitioned_or_refuses(aws: EmulatedAws, tmp_path: Path) -> None:
    job = RecordedJob(aws, tmp_path)
    job.restore()
    JobFolder(f"s3a://{job.bucket}/every-state", job.s3).begin(generation(queries=dict.fromkeys(QUERIES, QueryRecord.of(["a"], []))))

    def run(verb: str, *words: str) -> Called:
        return penstock(*verb.split(), str(job.file), "--job", "every-state", *words)

    moved = "its state is repartitioned from 2 to 1 shuffle partitions"
    for verb, words in {"savepoint create": ("--name", "one"), "savepoint start-from": ("one", "--plan-only")}.items():
        shown = run(verb, *words)
        assert shown.returncode == 0, shown.stderr
    rewound = run("rewind", "--by", "1s", "--with-state", "--plan-only")
    assert rewound.stdout.count(moved) == shown.stdout.count(moved) == len(QUERIES), rewound.stderr
    # As an aggregation without keys leaves it.
    with job.damaged("queries/once/state/0/1/", None):
        assert run("savepoint create", "--name", "two").returncode == 0
        assert "runs in one task" in run("savepoint start-from", "two", "--plan-only").stderr
        assert "JOB-109" in run("rewind", "--by", "1s", "--with-state", "--yes").stderr


def test_a_rewind_with_the_state_shows_the_micro_batch_that_it_goes_back_to(desk: Desk) -> None:
    desk.begin()
    desk.commit()

    def rewind(*words: str) -> Called:
        return penstock("rewind", str(desk.folder / "environment.yaml"), "--job", "clicks", "--with-state", *words)

    shown = rewind("--to", "2025-11-24T16:00:00Z", "--plan-only")
    assert shown.returncode == 0, shown.stderr
    assert "goes back to its state of 2025-11-24T16:00:00.000+00:00, as generation 2" in shown.stdout
    assert "after micro-batch 0 of 2025-11-24 16:00:00 UTC" in shown.stdout and "are written again, in new files" in shown.stdout
    early = rewind("--to", "2025-11-24T15:59:59Z", "--yes")
    assert (early.returncode, "DEP-034" in early.stderr, "2025-11-24T16:00:00.000+00:00" in early.stderr) == (2, True, True)
    assert "JOB-093" in rewind("--to", "2099-01-01T00:00:00Z", "--yes").stderr
    assert Savepoints(desk.uri, desk.s3).names() == []
    # The savepoint is taken, and an emulated cluster has no pods.
    assert "DEP-017" in rewind("--to", "2025-11-24T16:00:00Z", "--yes").stderr
    assert Savepoints(desk.uri, desk.s3).names() == ["rewind-1764000000000"]
    assert desk.requested() is None


def test_a_savepoint_that_the_next_driver_needs_is_kept(desk: Desk) -> None:
    desk.begin()
    desk.commit()
    assert desk.savepoint("create", "--name", "one").returncode == 0
    request = RewindRequest(after=1, start_from=desk.of("one").uri, asked=datetime.now(UTC))
    assert RewindRequestFile(desk.uri, desk.s3).replace(None, request)
    assert "DEP-033" in desk.savepoint("delete", "one", "--yes").stderr
    withdrawn = penstock("rewind", str(desk.folder / "environment.yaml"), "--job", "clicks", "--undo", "--plan-only")
    assert f"the start from {request.start_from} of clicks" in withdrawn.stdout and "has not begun" in withdrawn.stdout
