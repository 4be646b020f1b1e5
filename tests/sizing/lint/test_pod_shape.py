"""Rules on slots, cores and heap."""

from __future__ import annotations

import pytest

from penstock.sizing.lint.subject import LintedJob
from tests.sizing.lint.worlds import found, job, source, subject

HEAP = "spark.executor.extraJavaOptions"
# Spark's overhead, so that the heap is known.
OVERHEAD = {"spark.executor.memoryOverhead": "1g"}


def of(rule: str, linted: LintedJob) -> list[str]:
    return [finding.given for finding in found(rule, subject(jobs=(linted,)))]


def with_heap(heap_mib: int, **conf: str) -> LintedJob:
    return job(source(), memory_mib=heap_mib + 1024, spark_conf={**OVERHEAD, **conf})


def test_thirteen_slots_on_a_core_and_two_gibibytes_are_found() -> None:
    """The executor of a published Flink set-up."""
    linted = job(source(91), parallelism=91, slots=13, cpu_millicores=1000, memory_mib=2048)
    assert of("LINT-065", linted) == ["13 slots on 1 core"]
    assert of("LINT-066", linted) == ["53 MiB for each of 13 slots, of a heap of 1,463 MiB"]


@pytest.mark.parametrize(
    ("slots", "cores", "fires"), [(5, 4, False), (8, 4, False), (9, 4, True), (1, 0.5, False), (1, 0.1, False), (2, 0.5, True)]
)
def test_more_than_two_slots_per_core_are_found(slots: int, cores: float, fires: bool) -> None:
    assert bool(of("LINT-065", job(source(), slots=slots, cpu_millicores=int(cores * 1000)))) is fires


def test_the_cpu_limit_counts_where_a_pod_has_one() -> None:
    limit = {"spark.kubernetes.executor.limit.cores": "4"}
    assert of("LINT-065", job(source(), slots=5, cpu_millicores=2000)) == ["5 slots on 2 cores"]
    assert of("LINT-065", job(source(), slots=5, cpu_millicores=2000, spark_conf=limit)) == []


def test_the_heap_that_is_needed_for_the_slots_is_enough() -> None:
    (finding,) = found("LINT-066", subject(jobs=(job(source(), memory_mib=1024),)))
    assert finding.need == "64 MiB: a heap of 834 MiB"
    assert of("LINT-066", with_heap(834)) == []
    assert len(of("LINT-066", with_heap(832))) == 1
    assert of("LINT-066", job(source(), memory_mib=1024, has_load=True)) == [], "the load's rules decide"


@pytest.mark.parametrize(
    ("heap_mib", "options", "fires"),
    [
        (32_736, "", False),
        (32_737, "", True),
        (65_536, "-XX:+UseZGC", False),
        (60_000, "-XX:ObjectAlignmentInBytes=16", False),
        (66_000, "-XX:ObjectAlignmentInBytes=16", True),
    ],
)
def test_a_heap_above_the_range_of_compressed_pointers_is_found(heap_mib: int, options: str, fires: bool) -> None:
    given = of("LINT-068", with_heap(heap_mib, **({HEAP: options} if options else {})))
    assert given == ([f"a heap of {heap_mib:,} MiB for the executor"] if fires else [])


def test_the_heap_of_the_driver_counts_too() -> None:
    assert len(of("LINT-068", job(source(), driver_mib=65_536))) == 1
