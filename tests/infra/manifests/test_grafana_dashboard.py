from __future__ import annotations

import re

from penstock.infra.manifests.alerting_rules import rules
from penstock.infra.manifests.grafana_dashboard import PANELS, dashboard
from penstock.infra.manifests.prometheus import RENAMED, RENAMED_BY_PART, RENAMED_BY_QUERY
from penstock.infra.manifests.scraped_job import READING
from penstock.infra.parts.observability import Alarms
from penstock.scripts.dev.grafana_dashboard import text
from penstock.scripts.layout import ROOT

# Source: Karpenter 1.14, "Metrics".
KARPENTERS = {
    "karpenter_pods_unbound_time_seconds",
    "karpenter_nodepools_usage",
    "karpenter_nodepools_limit",
    "karpenter_nodes_allocatable",
}
METRICS = {READING, *RENAMED.values(), *RENAMED_BY_PART.values(), *RENAMED_BY_QUERY.values()}
ALERTS = {rule["alert"]: rule["expr"] for group in rules(Alarms(), 4)["groups"] for rule in group["rules"]}


def _metrics(expr: str) -> set[str]:
    return set(re.findall(r"\b(?:penstock_(?!job\b)\w+|metrics_executor_\w+|fluentbit_\w+|karpenter_\w+|up)\b", expr))


def test_the_file_is_the_dashboard() -> None:
    assert (ROOT / "docs/stacks/grafana-dashboard.json").read_text(encoding="utf-8") == text()


def test_every_metric_of_ours_is_one_that_prometheus_has() -> None:
    shown = {metric for panel in PANELS for metric in _metrics(panel.expr) if metric.startswith("penstock_")}
    assert shown and shown <= METRICS


def test_every_metric_of_karpenter_is_one_that_its_version_has() -> None:
    exprs = [*ALERTS.values(), *(panel.expr for panel in PANELS)]
    assert {metric for expr in exprs for metric in _metrics(expr) if metric.startswith("karpenter_")} == KARPENTERS


def test_every_alert_has_a_panel_with_one_of_its_metrics() -> None:
    for alert, expr in ALERTS.items():
        panels = [panel for panel in PANELS if re.search(rf"\b{alert}\b", panel.what)]
        assert any(_metrics(panel.expr) & _metrics(expr) for panel in panels), alert
    assert {name for panel in PANELS for name in re.findall(r"Penstock\w+", panel.what)} <= ALERTS.keys()


def test_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places) and {x for x, _ in places} == {0, 12}
