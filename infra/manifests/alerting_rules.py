"""The alerting rules of Prometheus.

Source: Prometheus' documentation, "Alerting rules"; Karpenter's, version 1.14, "Metrics".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.infra.job_alarms import TRIGGERS_OF_SILENCE
from penstock.infra.manifests.scraped_job import JOB_LABEL, READING, ScrapedJob
from penstock.infra.node_alarms import RUNBOOK
from penstock.infra.parts.observability import Alarms

# Four failures of one task fail its micro-batch. Source: Spark's configuration, spark.task.maxFailures.
TASK_FAILURES = 4
# Ours: what is left is less than a node of most pools. A pool's own replacements take no more (`penstock.infra.pool_limits`).
POOL_SHARE = 0.9
_MINUTE_MS = 60_000
# Ours: a trend over half an hour that leads beyond the limit within four hours leaves time to act within working hours.
_TREND, _AHEAD_S = "30m", 4 * 3600
# Ours: windows that are to close wait for that long at least.
_STANDS_MINUTES = 30
# Ours: a controller that is replaced is back before that.
_KARPENTER_MINUTES = 10


def rules(alarms: Alarms, pending_minutes: int | None, jobs: Sequence[ScrapedJob] = ()) -> dict[str, Any]:
    """The alerting rules: those of CloudWatch, with the same limits, and those that need metrics.

    Args:
        alarms: the limits.
        pending_minutes: for which a pod may wait for its node; None: Karpenter, which knows it, is not scraped.
        jobs: whose triggers may be longer than the limit for silence, and which of them are sessions.
    """
    return {
        "groups": [
            {"name": "penstock-jobs", "rules": [*_lag_rules(alarms), *_driver_rules(alarms, jobs), *_micro_batch_rules(alarms, jobs)]},
            *([] if pending_minutes is None else [{"name": "penstock-nodes", "rules": _node_rules(pending_minutes)}]),
            {
                "name": "penstock-logs",
                "rules": [
                    _alert(
                        "PenstockLogsLost",
                        "sum by (name) (increase(fluentbit_output_retries_failed_total[15m])) > 0",
                        None,
                        "page",
                        "loses logs at {{ $labels.name }}",
                        who="Fluent Bit",
                    )
                ],
            },
        ]
    }


def _lag_rules(alarms: Alarms) -> list[dict[str, Any]]:
    limit = alarms.lag_records
    # By its trend: it is said before the limit is reached, and a backlog that is being read is not said.
    grows = f"predict_linear(penstock_lag_records[{_TREND}], {_AHEAD_S}) > {limit} and deriv(penstock_lag_records[{_TREND}]) > 0"
    return [
        _alert("PenstockLag", f"penstock_lag_records > {limit}", "15m", "page", "is {{ $value }} records behind"),
        _alert(
            "PenstockLagGrows",
            f"{grows} and penstock_lag_records <= {limit}",
            _TREND,
            "ticket",
            f"will be {{{{ $value }}}} records behind in {_AHEAD_S // 3600} hours",
        ),
    ]


def _driver_rules(alarms: Alarms, jobs: Sequence[ScrapedJob]) -> list[dict[str, Any]]:
    tasks = f"sum by ({JOB_LABEL}) (increase(metrics_executor_failedTasks_total[5m]))"
    silent_minutes = alarms.silent // _MINUTE_MS
    return [
        _alert("PenstockDriverSilent", _silent(jobs), f"{silent_minutes}m", "page", "has no driver"),
        _alert(
            "PenstockRestarts",
            f"changes(penstock_started_seconds[1h]) > {alarms.restarts}",
            None,
            "page",
            "has begun anew {{ $value }} times within an hour",
        ),
        _alert(
            "PenstockFailedTasks",
            f"{tasks} >= {TASK_FAILURES * alarms.failed_batches}",
            None,
            "page",
            "has {{ $value }} failed tasks within 5 minutes, enough to fail its micro-batches",
        ),
    ]


def _silent(jobs: Sequence[ScrapedJob]) -> str:
    """The jobs without a driver: of a session each of its jobs if its driver does not answer, or if the job does not run in it.

    All with the labels of `up`, so that an alert goes on where one of the two follows the other.
    """
    sessions = [job for job in jobs if job.members]
    apart = f', {JOB_LABEL}!~"{"|".join(session.name for session in sessions)}"' if sessions else ""
    silent = [f'up{{job="drivers", bounded="false"{apart}}} == 0']
    for session in sessions:
        down = f'up{{job="drivers", {JOB_LABEL}="{session.name}"}} == 0'
        silent += [f'label_replace({down}, "{JOB_LABEL}", "{job}", "", "")' for job in session.members]
    return " or ".join([*silent, *([f"max without (type) ({READING}) == 0"] if sessions else [])])


def _micro_batch_rules(alarms: Alarms, jobs: Sequence[ScrapedJob]) -> list[dict[str, Any]]:
    """An idle job has no micro-batches either: it has no lag, and its watermark stands."""
    longest_ms = max((job.trigger_ms for job in jobs), default=0)
    minutes = -(-max(alarms.silent, TRIGGERS_OF_SILENCE * longest_ms) // _MINUTE_MS)
    stands_minutes = max(_STANDS_MINUTES, minutes)
    stands = f'changes(penstock_event_time_watermark_milliseconds{{of=""}}[{stands_minutes}m]) == 0'
    return [
        _alert(
            "PenstockNoCommit",
            f"penstock_lag_records > 0 unless on ({JOB_LABEL}) {_committing(minutes)}",
            "5m",
            "page",
            f"has {{{{ $value }}}} records to read and has committed no micro-batch for {minutes} minutes",
        ),
        _alert(
            "PenstockWatermarkStands",
            f"{stands} and on ({JOB_LABEL}) {_committing(stands_minutes)}",
            "15m",
            "page",
            "commits micro-batches, and its watermark stands",
        ),
    ]


def _node_rules(pending_minutes: int) -> list[dict[str, Any]]:
    """Karpenter sets the time of a pod without a node only now and then, and removes the series when the pod has one."""
    pool = "by (nodepool, resource_type)"
    # A pool that no job uses has a limit of 0.
    limit = f"(max {pool} (karpenter_nodepools_limit) > 0)"
    return [
        _alert(
            "PenstockPodsPending",
            "max by (namespace, name) (karpenter_pods_unbound_time_seconds) >= 0",
            f"{pending_minutes}m",
            "page",
            f"has waited for a node for more than {pending_minutes} minutes",
            who="{{ $labels.namespace }}/{{ $labels.name }}",
        ),
        _alert(
            "PenstockPoolLimit",
            f"max {pool} (karpenter_nodepools_usage) / {limit} >= {POOL_SHARE}",
            "15m",
            "ticket",
            "has {{ $value | humanizePercentage }} of its limit of {{ $labels.resource_type }} in use",
            who="NodePool {{ $labels.nodepool }}",
        ),
        _alert(
            "PenstockKarpenterDown",
            'absent(up{job="karpenter"} == 1)',
            f"{_KARPENTER_MINUTES}m",
            "page",
            "does not answer: pods without a node get none",
            who="Karpenter",
        ),
    ]


def _committing(minutes: int) -> str:
    """The jobs with micro-batches: no two of them take the same time to the millisecond, again and again."""
    return f"(sum by ({JOB_LABEL}) (changes(penstock_batch_milliseconds[{minutes}m])) > 0)"


def _alert(
    name: str, expr: str, lasting: str | None, severity: str, what: str, who: str = f"{{{{ $labels.{JOB_LABEL} }}}}"
) -> dict[str, Any]:
    waiting = {} if lasting is None else {"for": lasting}
    annotations = {"summary": f"{who} {what}", "runbook": f"{RUNBOOK}#{name.lower()}"}
    return {"alert": name, "expr": expr, **waiting, "labels": {"severity": severity}, "annotations": annotations}
