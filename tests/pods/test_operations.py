"""A running job is stopped and resumed, and stopped by its own failure: what `penstock status`, `logs`, `stop` and `resume` say and do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from penstock.jobs.spec import load
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.scripts.operations.pod_logs import pods_of, write_logs
from penstock.scripts.operations.running_job import OwnDriver, wait_until_it_reads
from tests.kube.evidence import wait_for
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec

SPEC, JOB = "page_counts", "page-counts"
LIMIT_S = 300
# In the year 2100: a driver can't rewind to it.
LATER_MS = 4_102_444_800_000


def test_no_row_is_lost_or_doubled_by_a_stop_and_by_a_failure_that_comes_again(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    spec = small_spec(SPEC, tmp_path, batches=4)
    wrong = team_job.release(small_spec(SPEC, tmp_path / "wrong", batches=4, rewindTo=LATER_MS), around, tmp_path / "release-wrong")
    api, runs = cluster.core.api_client, DriverRunsFile(f"s3a://{team_job.CHECKPOINTS}/{JOB}", local.s3)

    own = OwnDriver(api, JOB, lambda: runs.change(DriverRuns.resumed))

    def status() -> JobStatus:
        return status_of(load(spec), team_job.CHECKPOINTS, local.s3, datetime.now(UTC))

    def ended_by(job: ReleasedJob) -> str:
        """The termination message of the driver's last container."""
        containers = [one for pod in job.pods("driver") for one in pod.status.container_statuses or ()]
        ends = [one.last_state.terminated or one.state.terminated for one in containers]
        return "\n".join(end.message or "" for end in ends if end)

    def log(job: ReleasedJob, role: str, *, previous: bool = False) -> list[str]:
        lines: list[str] = []
        write_logs(api, pods_of(api, job.name, role), lines.append, follow=False, previous=previous)
        return lines

    def it_is_stopped_and_resumed(job: ReleasedJob) -> None:
        assert status().state == "running"
        assert any(line.startswith('{"event": "committed"') for line in log(job, "driver"))
        assert {line.partition(": ")[0] for line in log(job, "executor")} == {pod.metadata.name for pod in job.pods("executor")}
        assert own.stop()
        assert (status().state, job.pods("executor")) == ("stopped", [])
        assert own.resume()
        wait_until_it_reads(job.name, lambda: own.reads, lambda: str(status().cause), LIMIT_S)
        assert not own.resume()

    def it_fails_as_it_is_and_is_corrected(job: ReleasedJob) -> None:
        job.upgrade(wrong)
        wait_for(lambda: "JOB-092" in ended_by(job), LIMIT_S)
        assert "JOB-093" in ended_by(job)
        assert any(line.startswith('{"event": "failed"') for line in log(job, "driver", previous=True))
        failed = status()
        assert (failed.state, failed.runs[0].failure and failed.runs[0].failure.code) == ("failed", "JOB-093")
        assert job.pods("executor") == []
        assert own.resume()
        # It is tried once more, and fails as before.
        wait_for(lambda: [run.failure and run.failure.code for run in status().runs[:2]] == ["JOB-093", "JOB-093"], LIMIT_S)
        job.upgrade(job.release)

    faults: Faults = {1: it_is_stopped_and_resumed, 2: it_fails_as_it_is_and_is_corrected}
    with run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults, failures_allowed=50)
    assert verdict.compared
    assert not verdict.differences
