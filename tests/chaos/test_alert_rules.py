"""Prometheus' own tool reads the configuration and the alerting rules, and runs the rules over series that tests make up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.manifests.alerting_rules import rules
from penstock.infra.manifests.prometheus import IMAGE, Monitoring, configuration
from penstock.infra.manifests.scraped_job import ScrapedJob
from penstock.infra.parts.observability import Alarms
from penstock.scripts.kube import binaries
from penstock.scripts.kube.binaries import Program
from penstock.sizing.errors import ToolMissing

PROMTOOL = Program("promtool", "github.com/prometheus/prometheus/cmd/promtool", module=binaries.MODULE.with_name("promtool"))
ALARMS = Alarms.model_validate({"lagRecords": 1000, "failedBatches": 1, "restarts": 3, "silent": "10m"})
PENDING_MINUTES = 4
JOBS = (
    ScrapedJob("user-credit", "user-credit-driver-0.user-credit-driver.job-user-credit.svc", bounded=False),
    ScrapedJob("backfill", "backfill-driver-0.backfill-driver.job-backfill.svc", bounded=True),
)
# Of two jobs, one of whose names begins as the other one does.
SESSION = ScrapedJob("shared", "shared-driver-0.shared-driver.job-shared.svc", False, 1000, ("counts", "counts-by-user"))
MONITORING = Monitoring("production", "us-east-1", JOBS, ALARMS, PENDING_MINUTES, "https://metrics.example/workspaces/ws-1/", {}, [])
DRIVER = '{job="drivers", penstock_job="user-credit", bounded="false"}'
# The first run fetches and compiles some thousand packages.
pytestmark = pytest.mark.timeout(binaries.FETCH_LIMIT_S + binaries.BUILD_LIMIT_S)


@pytest.fixture(scope="module")
def promtool(tell: Callable[[str], None]) -> Path:
    try:
        return binaries.built(PROMTOOL, tell)
    except ToolMissing as error:
        pytest.skip(error.render())


def _run(promtool: Path, *arguments: str) -> str:
    ran = subprocess.run([str(promtool), *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _fires(promtool: Path, folder: Path, series: dict[str, str], alert: str, at: Mapping[str, str | tuple[str, ...] | None]) -> None:
    """Runs the rules over series with a sample a minute; `at` is time -> the jobs, or the output, that the alert fires for then."""
    (folder / "rules.yaml").write_text(json.dumps(rules(ALARMS, PENDING_MINUTES, [*JOBS, SESSION])), encoding="utf-8")
    expected = [_expected(time, alert, name) for time, name in at.items()]
    result: dict[str, Any] = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": expected,
            }
        ],
    }
    (folder / "test.yaml").write_text(json.dumps(result), encoding="utf-8")
    _run(promtool, "test", "rules", str(folder / "test.yaml"))


def _expected(time: str, alert: str, name: str | tuple[str, ...] | None) -> dict[str, Any]:
    """Prometheus writes a series ALERTS for each alert; which labels else an alert has is no matter here."""
    label = {"PenstockLogsLost": "name", "PenstockPodsPending": "name", "PenstockPoolLimit": "nodepool"}.get(alert, "penstock_job")
    label = "severity" if alert == "PenstockKarpenterDown" else label
    expr = f'count by ({label}) (ALERTS{{alertname="{alert}", alertstate="firing"}})'
    names = () if name is None else (name,) if isinstance(name, str) else name
    samples = [{"labels": f'{{{label}="{one}"}}', "value": 1} for one in names]
    return {"expr": expr, "eval_time": time, "exp_samples": samples}


def test_prometheus_accepts_the_configuration_and_the_rules(promtool: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(rules(ALARMS, PENDING_MINUTES)), encoding="utf-8")
    written = configuration(MONITORING) | {"rule_files": [str(tmp_path / "rules.yaml")]}
    (tmp_path / "prometheus.yaml").write_text(json.dumps(written), encoding="utf-8")
    assert "11 rules found" in _run(promtool, "check", "config", "--lint=all", "--lint-fatal", str(tmp_path / "prometheus.yaml"))


def test_the_tool_is_of_the_version_that_is_deployed() -> None:
    version = IMAGE.rpartition(":v")[2]
    major, minor, patch = version.split(".")
    wanted = f"github.com/prometheus/prometheus v0.{int(major)}{int(minor):02d}.{patch}"
    assert wanted in (PROMTOOL.module / "go.mod").read_text(encoding="utf-8")


def test_a_lag_that_lasts_fires_and_one_that_passes_does_not(promtool: Path, tmp_path: Path) -> None:
    series = {f"penstock_lag_records{DRIVER}": "0x4 2000x10 0x4 2000x20"}
    _fires(promtool, tmp_path, series, "PenstockLag", {"15m": None, "34m": None, "36m": "user-credit"})


def test_a_lag_that_grows_towards_the_limit_fires_before_it(promtool: Path, tmp_path: Path) -> None:
    # 3 records a minute: 720 more in four hours, so that more than 1,000 are ahead once 280 are behind.
    series = {f"penstock_lag_records{DRIVER}": "0+3x330"}
    _fires(promtool, tmp_path, series, "PenstockLagGrows", {"90m": None, "130m": "user-credit", "329m": "user-credit"})


def test_a_lag_that_shrinks_or_stays_small_does_not_grow(promtool: Path, tmp_path: Path) -> None:
    series = {f"penstock_lag_records{DRIVER}": "900-2x200", f"penstock_lag_records{DRIVER.replace('user-credit', 'other')}": "0 5 0 5x200"}
    _fires(promtool, tmp_path, series, "PenstockLagGrows", {"40m": None, "80m": None, "150m": None})


BATCH, MARK = f"penstock_batch_milliseconds{DRIVER}", f"penstock_event_time_watermark_milliseconds{DRIVER}"


def test_a_job_with_records_to_read_that_commits_nothing_fires(promtool: Path, tmp_path: Path) -> None:
    series = {BATCH: "100+1x10 110x40", f"penstock_lag_records{DRIVER}": "7x50"}
    _fires(promtool, tmp_path, series, "PenstockNoCommit", {"10m": None, "18m": None, "28m": "user-credit"})


def test_a_job_that_is_idle_or_commits_does_not_lack_commits(promtool: Path, tmp_path: Path) -> None:
    other = DRIVER.replace("user-credit", "other")
    series = {BATCH: "100x50", f"penstock_lag_records{DRIVER}": "0x50"}
    series |= {f"penstock_batch_milliseconds{other}": "100+1x50", f"penstock_lag_records{other}": "7x50"}
    _fires(promtool, tmp_path, series, "PenstockNoCommit", {"28m": None, "45m": None})


def test_a_watermark_that_stands_fires_while_micro_batches_are_committed(promtool: Path, tmp_path: Path) -> None:
    series = {BATCH: "100+1x90", MARK: "0+60000x10 600000x80"}
    _fires(promtool, tmp_path, series, "PenstockWatermarkStands", {"30m": None, "50m": None, "60m": "user-credit"})


def test_a_watermark_that_moves_or_that_of_an_idle_job_does_not_stand(promtool: Path, tmp_path: Path) -> None:
    other = DRIVER.replace("user-credit", "other")
    series = {BATCH: "100+1x90", MARK: "0+60000x90"}
    series |= {f"penstock_batch_milliseconds{other}": "100x90", f"penstock_event_time_watermark_milliseconds{other}": "5x90"}
    _fires(promtool, tmp_path, series, "PenstockWatermarkStands", {"60m": None, "85m": None})


def test_a_driver_that_does_not_answer_fires_unless_it_may_have_ended(promtool: Path, tmp_path: Path) -> None:
    bounded = '{job="drivers", penstock_job="backfill", bounded="true"}'
    series = {f"up{DRIVER}": "1x4 0x30", f"up{bounded}": "1x4 0x30"}
    _fires(promtool, tmp_path, series, "PenstockDriverSilent", {"10m": None, "16m": "user-credit"})


SHARED = DRIVER.replace("user-credit", "shared")


def _of_session(job: str) -> str:
    return DRIVER.replace('penstock_job="user-credit"', f'penstock_job="{job}", type="gauges"')


def test_a_session_that_does_not_answer_fires_for_each_of_its_jobs(promtool: Path, tmp_path: Path) -> None:
    series = {f"up{SHARED}": "1x4 0x30", **{f"penstock_reading{_of_session(job)}": "1x4" for job in SESSION.members}}
    _fires(promtool, tmp_path, series, "PenstockDriverSilent", {"10m": None, "16m": ("counts", "counts-by-user")})


def test_a_job_that_does_not_run_in_its_session_fires_and_the_others_do_not(promtool: Path, tmp_path: Path) -> None:
    series = {f"up{SHARED}": "1x50"}
    series |= {f"penstock_reading{_of_session(job)}": f"1x4 {value}x40" for job, value in zip(SESSION.members, (0, 1), strict=True)}
    _fires(promtool, tmp_path, series, "PenstockDriverSilent", {"10m": None, "16m": "counts"})


def test_the_jobs_of_a_session_that_does_not_answer_while_one_was_silent_fire_once_each(promtool: Path, tmp_path: Path) -> None:
    series = {f"up{SHARED}": "1x14 0x30", f"penstock_reading{_of_session('counts')}": "0x14"}
    _fires(promtool, tmp_path, series, "PenstockDriverSilent", {"12m": "counts", "20m": "counts", "26m": ("counts", "counts-by-user")})


def test_drivers_that_begin_anew_again_and_again_fire(promtool: Path, tmp_path: Path) -> None:
    series = {f"penstock_started_seconds{DRIVER}": "100x9 200x9 300x9 400x9 500x9"}
    _fires(promtool, tmp_path, series, "PenstockRestarts", {"35m": None, "45m": "user-credit"})


def test_a_driver_that_is_deployed_anew_does_not_fire(promtool: Path, tmp_path: Path) -> None:
    series = {f"penstock_started_seconds{DRIVER}": "100x9 200x50"}
    _fires(promtool, tmp_path, series, "PenstockRestarts", {"30m": None})


def test_tasks_that_fail_often_enough_to_fail_a_micro_batch_fire_whichever_executor_they_ran_on(promtool: Path, tmp_path: Path) -> None:
    labels = '{{job="executors", penstock_job="user-credit", bounded="false", executor_id="{}"}}'
    series = {f"metrics_executor_failedTasks_total{labels.format(number)}": "0x9 0+1x5 5x20" for number in (1, 2)}
    _fires(promtool, tmp_path, series, "PenstockFailedTasks", {"5m": None, "14m": "user-credit"})


def test_one_task_that_fails_does_not_fire(promtool: Path, tmp_path: Path) -> None:
    series = {'metrics_executor_failedTasks_total{penstock_job="user-credit", executor_id="1"}': "0x9 1x20"}
    _fires(promtool, tmp_path, series, "PenstockFailedTasks", {"12m": None})


def test_logs_that_are_given_up_fire(promtool: Path, tmp_path: Path) -> None:
    series = {'fluentbit_output_retries_failed_total{name="flights-cloudwatch"}': "0x9 1x20"}
    _fires(promtool, tmp_path, series, "PenstockLogsLost", {"5m": None, "15m": "flights-cloudwatch"})


POD = '{job="karpenter", instance="10.0.0.1:8080", namespace="job-clicks", name="clicks-exec-1"}'


def test_a_pod_that_gets_no_node_fires_after_three_starts_of_a_node(promtool: Path, tmp_path: Path) -> None:
    series = {f"karpenter_pods_unbound_time_seconds{POD}": "5 5 5 180x20"}
    _fires(promtool, tmp_path, series, "PenstockPodsPending", {"3m": None, "5m": "clicks-exec-1"})


def test_pods_that_get_their_nodes_one_after_another_do_not_fire(promtool: Path, tmp_path: Path) -> None:
    series = {
        f"karpenter_pods_unbound_time_seconds{POD.replace('exec-1', f'exec-{number}')}": f"{'_ ' * 3 * number}30 60 90 stale"
        for number in range(4)
    }
    _fires(promtool, tmp_path, series, "PenstockPodsPending", {"4m": None, "8m": None, "11m": None})


def _pool(resource: str, instance: int = 1, pool: str = "executors") -> str:
    return f'{{job="karpenter", instance="10.0.0.{instance}:8080", nodepool="{pool}", resource_type="{resource}"}}'


def test_a_pool_with_little_left_of_its_limit_fires(promtool: Path, tmp_path: Path) -> None:
    series = {f"karpenter_nodepools_limit{_pool('cpu')}": "38x40", f"karpenter_nodepools_usage{_pool('cpu')}": "16x10 36x30"}
    _fires(promtool, tmp_path, series, "PenstockPoolLimit", {"20m": None, "30m": "executors"})


def test_a_pool_with_room_without_limits_or_of_no_job_does_not_fire(promtool: Path, tmp_path: Path) -> None:
    series = {f"karpenter_nodepools_limit{_pool('memory')}": "280x40", f"karpenter_nodepools_usage{_pool('memory')}": "230x40"}
    series |= {f"karpenter_nodepools_usage{_pool('cpu', pool='free')}": "1000x40"}
    series |= {f"karpenter_nodepools_{what}{_pool('cpu', pool='unused')}": "0x40" for what in ("limit", "usage")}
    _fires(promtool, tmp_path, series, "PenstockPoolLimit", {"20m": None, "39m": None})


def test_karpenter_is_down_if_no_controller_answers(promtool: Path, tmp_path: Path) -> None:
    up = 'up{{job="karpenter", instance="10.0.0.{}:8080"}}'
    series = {up.format(1): "1x5 0x30", up.format(2): "1x10 0x25"}
    _fires(promtool, tmp_path, series, "PenstockKarpenterDown", {"15m": None, "20m": None, "25m": "page"})


def test_karpenter_is_not_down_while_one_controller_answers(promtool: Path, tmp_path: Path) -> None:
    up = 'up{{job="karpenter", instance="10.0.0.{}:8080"}}'
    _fires(promtool, tmp_path, {up.format(1): "1x5 0x30", up.format(2): "1x40"}, "PenstockKarpenterDown", {"34m": None})
