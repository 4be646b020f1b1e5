"""A dashboard of Grafana for the jobs and nodes of an environment.

The metrics are those that `penstock.infra.manifests.prometheus` scrapes.

Source: Grafana's documentation, "Dashboard JSON model", schema version 39.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.infra.manifests.scraped_job import JOB_LABEL, READING

_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 24
_JOB = f'{JOB_LABEL}=~"$job"'
_SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True)
class Panel:
    """A graph.

    Args:
        title: of the panel.
        what: it shows, and which alert looks at it.
        expr: in PromQL.
        legend: of each series.
        unit: Grafana's id of it.
    """

    title: str
    what: str
    expr: str
    legend: str
    unit: str = "short"


PANELS = (
    Panel(
        "Lag", "Records behind the ends of the topics: PenstockLag, PenstockLagGrows", f"penstock_lag_records{{{_JOB}}}", "{{penstock_job}}"
    ),
    Panel(
        "Watermark behind the clock",
        "Of the job; it does not move: PenstockWatermarkStands",
        f'time() - penstock_event_time_watermark_milliseconds{{{_JOB}, of=""}} / 1000',
        "{{penstock_job}}",
        "s",
    ),
    Panel(
        "Records read",
        "Of the last micro-batch, a second",
        f"sum by ({JOB_LABEL}, query) (penstock_processed_rows_per_second{{{_JOB}}})",
        "{{penstock_job}} {{query}}",
        "cps",
    ),
    Panel(
        "Records that arrive",
        "Of the last micro-batch, a second",
        f"sum by ({JOB_LABEL}, query) (penstock_input_rows_per_second{{{_JOB}}})",
        "{{penstock_job}} {{query}}",
        "cps",
    ),
    Panel(
        "Duration of micro-batches",
        "No change with a lag: PenstockNoCommit",
        f"penstock_batch_milliseconds{{{_JOB}}}",
        "{{penstock_job}} {{query}}",
        "ms",
    ),
    Panel("State", "Bytes of a query's state", f"penstock_state_bytes{{{_JOB}}}", "{{penstock_job}} {{query}}", "bytes"),
    Panel(
        "Late rows",
        "Of each input, a minute",
        f"60 * rate(penstock_late_rows{{{_JOB}}}[$__rate_interval])",
        "{{penstock_job}} {{of}}",
    ),
    Panel("Rows by partition", "Of the last micro-batch: skew", f"penstock_batch_rows{{{_JOB}}}", "{{penstock_job}} {{of}}"),
    Panel(
        "Starts of drivers",
        "Within an hour: PenstockRestarts",
        f"changes(penstock_started_seconds{{{_JOB}}}[1h])",
        "{{penstock_job}}",
    ),
    Panel(
        "Drivers that answer",
        "Of a session's job whether it runs in its session's driver. 0: PenstockDriverSilent",
        f'up{{job="drivers", {_JOB}}} or {READING}{{{_JOB}}}',
        "{{penstock_job}}",
    ),
    Panel(
        "Failed tasks",
        "Within 5 minutes, of a session on the executors of all its jobs: PenstockFailedTasks",
        f"sum by ({JOB_LABEL}) (increase(metrics_executor_failedTasks_total{{{_JOB}}}[5m]))",
        "{{penstock_job}}",
    ),
    Panel(
        "Pods without a node",
        "Seconds since each was made: PenstockPodsPending",
        "max by (namespace, name) (karpenter_pods_unbound_time_seconds)",
        "{{namespace}}/{{name}}",
        "s",
    ),
    Panel(
        "Use of NodePools",
        "Share of their limits: PenstockPoolLimit",
        "max by (nodepool, resource_type) (karpenter_nodepools_usage) / (max by (nodepool, resource_type) (karpenter_nodepools_limit) > 0)",
        "{{nodepool}} {{resource_type}}",
        "percentunit",
    ),
    Panel(
        "Nodes",
        "Nodes in the cluster by NodePool",
        'count by (nodepool) (karpenter_nodes_allocatable{resource_type="cpu", nodepool!=""})',
        "{{nodepool}}",
    ),
    Panel("Karpenter's controllers that answer", "0: PenstockKarpenterDown", 'sum(up{job="karpenter"})', "controllers"),
    Panel(
        "Lost logs",
        "Records that Fluent Bit has given up within 15 minutes: PenstockLogsLost",
        "sum by (name) (increase(fluentbit_output_retries_failed_total[15m]))",
        "{{name}}",
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it: it asks for the data source, and has the jobs as a variable."""
    return {
        "uid": "penstock-jobs",
        "title": "Penstock jobs",
        "tags": ["penstock"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source(), _jobs()]},
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _jobs() -> dict[str, Any]:
    # A job of a session is no target; a driver that has never answered has nothing else.
    query = f'label_values({{__name__=~"up|penstock_started_seconds", {JOB_LABEL}!=""}}, {JOB_LABEL})'
    return {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    beside = _COLUMNS // _WIDTH
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.what,
        "datasource": _SOURCE,
        "gridPos": {"x": number % beside * _WIDTH, "y": number // beside * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": panel.expr, "legendFormat": panel.legend}],
    }
