"""What Prometheus keeps of a scrape: the relabelling of a scrape configuration, as far as Penstock's uses it.

Source: Prometheus' documentation, "Configuration", "relabel_config".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NAME = "__name__"
Labels = frozenset[tuple[str, str]]
_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: \d+)?")
# Of the target, and Spark's kinds of metrics.
_OF_TARGET = ("job", "bounded", "type")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


def kept(scrape: Mapping[str, Any], text: str, target: Mapping[str, str]) -> dict[Labels, float]:
    """The series of a target's answer; Prometheus has one sample of each.

    Args:
        scrape: a scrape configuration.
        text: the answer.
        target: its labels.
    """
    found: dict[Labels, float] = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            labels = {NAME: match[1], **dict(_LABEL.findall(match[2] or "")), **target}
            result = _relabelled(labels, scrape["metric_relabel_configs"])
            if result is not None:
                series = frozenset(result.items())
                assert series not in found, f"two samples of {sorted(series)}"
                found[series] = float(match[3])
    return found


def _relabelled(labels: dict[str, str], configs: list[dict[str, Any]]) -> dict[str, str] | None:
    for config in configs:
        pattern = re.compile(config["regex"])
        action = config.get("action", "replace")
        if action == "labeldrop":
            labels = {name: value for name, value in labels.items() if not pattern.fullmatch(name)}
            continue
        match = pattern.fullmatch(";".join(labels.get(name, "") for name in config["source_labels"]))
        if action == "drop" and match:
            return None
        if action == "replace" and match:
            labels = {**labels, config["target_label"]: match.expand(re.sub(r"\$\{?(\d+)\}?", r"\\g<\1>", config["replacement"]))}
            labels = {name: value for name, value in labels.items() if value}
    return labels


def by_job(series: Mapping[Labels, float], metric: str, **labels: str) -> dict[str, float]:
    """Job -> the value of its one series of a metric that has these labels, and no others but those of its target and its kind.

    Args:
        series: see `kept`.
        metric: its name.
        labels: of the series.
    """
    asked = {NAME: metric, **labels}
    found: dict[str, float] = {}
    for one, value in series.items():
        own = dict(one)
        job = own.pop("penstock_job")
        if {name: text for name, text in own.items() if name not in _OF_TARGET} == asked:
            assert job not in found
            found[job] = value
    return found
