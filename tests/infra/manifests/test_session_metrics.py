"""The names of the gauges of a session's jobs, as Prometheus relabels them."""

from __future__ import annotations

import re

import pytest

from penstock.infra.manifests.prometheus import _of_members
from penstock.infra.manifests.scraped_job import JOB_LABEL

PREFIX = "metrics_penstock_driver_"


def relabelled(name: str, members: tuple[str, ...]) -> tuple[str, str]:
    """Name and job of a gauge, by Prometheus' rules: a regular expression matches the whole name."""
    labels = {"__name__": name, JOB_LABEL: "shared"}
    for rule in _of_members(members):
        match = re.fullmatch(rule["regex"], labels["__name__"])
        if match is not None:
            labels[rule["target_label"]] = match.expand(re.sub(r"\$\{(\d)\}", r"\\g<\1>", rule["replacement"]))
    return labels["__name__"], labels[JOB_LABEL]


@pytest.mark.parametrize(
    ("name", "renamed", "job"),
    [
        ("DAGScheduler_penstock_job_error_logs_lagRecords_Value", "DAGScheduler_penstock_lagRecords_Value", "error-logs"),
        ("DAGScheduler_penstock_job_error_lagRecords_Value", "DAGScheduler_penstock_lagRecords_Value", "error"),
        ("DAGScheduler_penstock_job_error_logs_rows_in_0_Value", "DAGScheduler_penstock_rows_in_0_Value", "error-logs"),
        ("spark_streaming_error_logs_latency_Value", "spark_streaming_error_logs_latency_Value", "error-logs"),
        ("spark_streaming_error_counts_latency_Value", "spark_streaming_error_counts_latency_Value", "error"),
        ("BlockManager_memory_memUsed_MB_Value", "BlockManager_memory_memUsed_MB_Value", "shared"),
    ],
)
def test_a_gauge_has_the_label_of_its_job_and_the_name_that_it_has_in_a_driver_of_one_job(name: str, renamed: str, job: str) -> None:
    assert relabelled(f"{PREFIX}{name}", ("error", "error-logs")) == (f"{PREFIX}{renamed}", job)
